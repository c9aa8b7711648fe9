"""Which files a command would write: none that it reads, none twice, and none that is there already, unless
``--overwrite`` allows it. All of it is looked at before anything is read or asked."""

from __future__ import annotations

import dataclasses
import glob
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from veilog._files import check_absent
from veilog.cli.shared.terminal import CALL
from veilog.errors import OutputError

WRITTEN = ("target", "out", "page", "model", "json", "report", "report_outside", "dossier", "registry", "chart")
"""Options and words of commands that name what is written; all other paths are read."""


def check_places(arguments: Mapping[str, Any]) -> None:
    """Refuse a result that would go over a log, a ledger, a list or another result, that would become a part of the
    log, or whose file is there already."""
    places = list(_places(arguments))
    for (name, place), (other, beside) in itertools.permutations(places, 2):
        if name in WRITTEN and _same(place, beside):
            what = {"log": "the log itself", "ledger": "the ledger itself"}.get(other, "another file of this command")
            raise OutputError(f"This would overwrite {what}.", path=place, advice="Give another file.")
        if name in ("target", "out") and other in ("log", "original") and _inside(place, beside):
            raise OutputError(
                "This would be a part of the log from then on: its folder, or pattern, holds it.",
                path=place,
                advice="Give a file elsewhere.",
            )
    dry = getattr(arguments.get("trying"), "dry_run", False)  # then nothing but the JSON is written
    written = ("json",) if dry else WRITTEN if "log" in arguments else set(WRITTEN) - {"model"}  # one is drawn from
    check_all_absent(place for name, place in places if name in written)


def check_all_absent(places: Iterable[Path]) -> None:
    """Refuse to replace any of these files, unless ``--overwrite`` allows it."""
    for place in () if CALL.get().overwrite else places:
        check_absent(place)


def check_named_once(json: str, words: Sequence[str]) -> None:
    """Refuse to write JSON, of what went wrong, to a place that other words of a command name, too, or where a file is
    already: the words may be those of a command that could not be understood."""
    place = Path(json)
    named = [word.partition("=")[2] if word.startswith("--") else word.removeprefix("@") for word in words]
    if sum(_same(Path(name), place) for name in named if name) > 1:
        raise OutputError("This would overwrite another file of this command.", path=place)
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


def _same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError, RuntimeError):  # too long a name, one with a zero, links in a circle
        return False


def _inside(target: Path, log: Path) -> bool:
    """Whether a file would be read with the log, which is a folder or a pattern: where others of its suffix are."""
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
