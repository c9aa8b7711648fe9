"""Standard input and output as logs: ``-`` for LOG, or for TARGET.

Reading needs a file that can be looked at twice, and writing one that is whole or not there. So what comes in is kept
in a folder of this process's own until the command ends, and what goes out is written there first.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilog._files import reason
from veilog.cli.shared.terminal import nowhere
from veilog.errors import InputError, OutputError, ParameterError

_PIPE = Path("-")
_BLOCK = 1 << 20
_folders: list[Path] = []
"""What this command keeps until it ends."""


def is_pipe(path: Path) -> bool:
    """Return whether this stands for standard input or output."""
    return path == _PIPE


def is_outgoing(place: Path) -> bool:
    """Return whether a file is one of :func:`outgoing`, to be sent to standard output."""
    return place.parent in _folders and place.name.startswith("stdout")


def in_words(path: Path, *, out: bool = False) -> str:
    """Return what a log is called where it is shown."""
    return ("standard output" if out else "standard input") if is_pipe(path) else str(path)


def check_formats(arguments: Mapping[str, Any]) -> None:
    """Refuse a format that nothing would listen to: where no log is ``-``, the suffix of each file says its format."""
    files = [value for value in arguments.values() if isinstance(value, Path)]
    if arguments.get("to") is not None and not is_pipe(arguments["target"]):
        raise ParameterError(
            f"--to is the format of what goes to standard output, and {arguments['target']} is a file.",
            parameter="to",
            advice="Leave --to away: the suffix says the format.",
        )
    if getattr(arguments.get("reading"), "format", None) is not None and not any(map(is_pipe, files)):
        raise ParameterError(
            "--format is the format of standard input or output, and no log is - .",
            parameter="format",
            advice="Leave --format away: the suffix of a file says its format. One of another suffix can come in: "
            "- --format csv < FILE.",
        )


def received(format_: str | None, limit: int) -> Path:
    """Return a file with what comes from standard input, in a log's format; it is gone when the command ends."""
    from veilog.logs.input.reader import known_suffixes  # loaded with numbers, for which a start does not wait

    suffix = _suffix(format_, known_suffixes(), "comes from standard input")
    if any(place.name.startswith("stdin") for folder in _folders for place in folder.iterdir()):
        raise ParameterError("Standard input can be read once, so only one log is - .", parameter="log")
    place = _folder() / f"stdin{suffix}"
    size = 0
    try:
        with place.open("xb") as file:
            while block := sys.stdin.buffer.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise InputError(f"More than {limit} bytes came from standard input.", advice="Raise --limit.")
                file.write(block)
    except OSError as error:
        raise InputError(f"Standard input cannot be kept: {reason(error)}.") from error
    return place


def outgoing(format_: str | None) -> Path:
    """Return a file to write what goes to standard output to; :func:`send` sends it."""
    from veilog.logs.input.reader import SUFFIXES

    return _folder() / f"stdout{_suffix(format_, SUFFIXES, 'goes to standard output')}"


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
        raise OutputError(f"Standard output cannot be written: {reason(error)}.") from error


def without_folder(text: str) -> str:
    """Return a message that names what is kept here without the folder, which is nobody's business."""
    for folder in _folders:
        text = text.replace(f"{folder}/", "")
    return text


@contextmanager
def cleared() -> Iterator[None]:
    """Remove at the end what was kept in this block."""
    try:
        yield
    finally:
        while _folders:
            shutil.rmtree(_folders.pop(), ignore_errors=True)


def _folder() -> Path:
    _folders.append(Path(tempfile.mkdtemp(prefix="veilog-pipe-")))
    return _folders[-1]


def _suffix(format_: str | None, known: tuple[str, ...], what: str) -> str:
    suffix = "" if format_ is None else f".{format_.strip().lower().removeprefix('.')}"
    if suffix in known:
        return suffix
    formats = ", ".join(name.removeprefix(".") for name in known)
    problem = f"Nothing says in what format a log {what}."
    if format_ is not None:
        problem = f"No log {what} in the format {format_!r}."
    raise ParameterError(problem, parameter="format", advice=f"Say it: --format csv, or another of {formats}.")
