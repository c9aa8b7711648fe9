"""The files of a command, and ``-`` for standard input or output as a log.

A file that it writes is none that it reads, is named once, and does not exist yet, unless ``--overwrite`` allows it.

Reading needs a file that can be read twice, and writing one that is whole or missing. So input is kept in a folder of
this process until the command ends, and output is written there first.
"""

from __future__ import annotations

import dataclasses
import glob
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from veilog._files import check_absent, reason
from veilog.cli.shared.terminal import CALL, nowhere
from veilog.errors import InputError, OutputError, ParameterError

_PIPE = Path("-")


_BLOCK = 1 << 20


_folders: list[Path] = []
"""Folders that this command keeps until it ends."""


def is_pipe(path: Path) -> bool:
    """Return True if this stands for standard input or output."""
    return path == _PIPE


def path_text(path: Path, *, out: bool = False) -> str:
    """Return the name of a log for messages."""
    return ("standard output" if out else "standard input") if is_pipe(path) else str(path)


def check_formats(arguments: Mapping[str, Any]) -> None:
    """Refuse a format without effect: only a log ``-`` has one, files have suffixes."""
    files = [value for value in arguments.values() if isinstance(value, Path)]
    if arguments.get("to") is not None and not is_pipe(arguments["target"]):
        raise ParameterError("output-format-for-file", parameter="to", arguments=arguments["target"])
    if getattr(arguments.get("reading"), "format", None) is not None and not any(map(is_pipe, files)):
        raise ParameterError("format-without-pipe", parameter="format")


def input_file(format_: str | None, limit: int) -> Path:
    """Return a file with the content of standard input, in a log's format.

    It is removed when the command ends.
    """
    from veilog.logs.input.formats import known_suffixes  # it loads numbers, for which a start does not wait

    suffix = _suffix(format_, known_suffixes(), coming=True)
    if any(place.name.startswith("stdin") for folder in _folders for place in folder.iterdir()):
        raise ParameterError("input-read-twice", parameter="log")
    place = _folder() / f"stdin{suffix}"
    size = 0
    try:
        with place.open("xb") as file:
            while block := sys.stdin.buffer.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise InputError("input-too-large", limit=limit)
                file.write(block)
    except OSError as error:
        raise InputError("input-not-kept", reason=reason(error)) from error
    return place


def output_file(format_: str | None) -> Path:
    """Return a file for output to standard output; :func:`send` sends it."""
    from veilog.logs.input.formats import SUFFIXES

    return _folder() / f"stdout{_suffix(format_, SUFFIXES, coming=False)}"


def send(place: Path) -> None:
    """Send this file to standard output."""
    try:
        with place.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, _BLOCK)
        sys.stdout.buffer.flush()
    except OSError as error:
        nowhere(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError("output-not-writable", reason=reason(error)) from error


def hide_folder(text: str) -> str:
    """Return a message about kept files without their folder, an internal matter."""
    for folder in _folders:
        text = text.replace(f"{folder}/", "")
    return text


@contextmanager
def remove_at_end() -> Iterator[None]:
    """Remove at the end of the block what it kept."""
    try:
        yield
    finally:
        while _folders:
            shutil.rmtree(_folders.pop(), ignore_errors=True)


def _folder() -> Path:
    _folders.append(Path(tempfile.mkdtemp(prefix="veilog-pipe-")))
    return _folders[-1]


def _suffix(format_: str | None, known: tuple[str, ...], *, coming: bool) -> str:
    """Return the suffix of a format, which a log without a name must have."""
    suffix = "" if format_ is None else f".{format_.strip().lower().removeprefix('.')}"
    if suffix in known:
        return suffix
    formats = ", ".join(name.removeprefix(".") for name in known)
    missing = "format-missing-of-input" if coming else "format-missing-of-output"
    unknown = "format-unknown-of-input" if coming else "format-unknown-of-output"
    code = missing if format_ is None else unknown
    raise ParameterError(code, parameter="format", format=format_, formats=formats)


WRITTEN = ("target", "out", "page", "model", "json", "report", "recipient_report", "dossier", "registry", "chart")
"""Options and words of commands that name written files; all other paths are read."""


def check_places(arguments: Mapping[str, Any]) -> None:
    """Refuse a result in place of a log, a ledger, a list or another result.

    It must not become a part of the log either, nor exist already.
    """
    places = list(_places(arguments))
    for (name, place), (other, beside) in itertools.permutations(places, 2):
        if name in (*WRITTEN, "checkpoint") and _is_same(place, beside):
            what = {"log": "the log itself", "ledger": "the ledger itself"}.get(other, "another file of this command")
            raise OutputError("file-would-be-overwritten", path=place, what=what)
        if name in ("target", "out") and other in ("log", "original") and _is_inside(place, beside):
            raise OutputError("file-inside-log-folder", path=place)
    dry = getattr(arguments.get("preview"), "dry_run", False)  # then nothing but the JSON is written
    written = ("json",) if dry else WRITTEN if "log" in arguments else set(WRITTEN) - {"model"}  # sample reads it
    check_all_absent(place for name, place in places if name in written)


def check_all_absent(places: Iterable[Path]) -> None:
    """Refuse to replace any of these files, unless ``--overwrite`` allows it."""
    for place in () if CALL.get().overwrite else places:
        check_absent(place)


def check_named_once(json: str, words: Sequence[str]) -> None:
    """Refuse to write an error as JSON to a place that the command names otherwise.

    The place must not exist either: the words may be those of a command that veilog could not understand.
    """
    place = Path(json)
    named = [word.partition("=")[2] if word.startswith("--") else word.removeprefix("@") for word in words]
    if sum(_is_same(Path(name), place) for name in named if name) > 1:
        raise OutputError("file-of-command-overwritten", path=place)
    check_all_absent([place])


def _places(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    for name, value in arguments.items():
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from _places({one.name: getattr(value, one.name) for one in dataclasses.fields(value)})
        elif isinstance(value, tuple | list):
            for one in value:
                yield from _places({name: one})
        elif isinstance(value, Path) and str(value) != "-":
            yield name, value
        elif isinstance(value, str) and value != "-" and (name == "json" or value.startswith("@")):
            yield name, Path(value.removeprefix("@"))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # too long a name, one with a zero, links in a circle
        return False


def _is_inside(target: Path, log: Path) -> bool:
    """Return True if a file would be read with the log, a folder or a pattern.

    In a folder, this holds if it has others of the file's suffix.
    """
    try:
        if log.is_dir():
            alike = any(log.rglob(f"*{target.suffix}")) if target.suffix else False
            return alike and target.resolve().is_relative_to(log.resolve())
        if not glob.has_magic(str(log)) or log.exists():
            return False
        pattern = str(log.absolute())  # ** stands for no folder, too
        return any(fnmatch(str(target.absolute()), one) for one in (pattern, pattern.replace("**/", "")))
    except (OSError, ValueError, RuntimeError):  # too long a name, one with a zero, links in a circle
        return False
