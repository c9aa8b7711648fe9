"""That no result is written over what a command reads or writes besides, nor over what was paid for: looked at before
anything is read or asked."""

from __future__ import annotations

import dataclasses
import glob
import itertools
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from veilog.cli.shared.replaced import check_not_replaced
from veilog.errors import OutputError

__all__ = ["WRITTEN", "check_named_once", "check_places"]

WRITTEN = ("target", "out", "page", "model", "json", "report", "report_outside", "dossier", "registry", "chart")
"""Options and words of commands that name what is written; all other paths are read."""
_READ = ("log", "original", "released")
"""Options and words that name a log, beside which a ledger may be. A model is written where a log is named with it."""
_TAIL = 8192


def check_places(arguments: Mapping[str, Any]) -> None:
    """Refuse a result that would go over a log, a ledger, a list, another result or a release that was paid for, or
    become a part of the log."""
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
    for name, place in places:
        if name == "json":
            _check_json(place)
    if getattr(arguments.get("trying"), "dry_run", False):
        return  # nothing but the JSON is written
    written = [place for name, place in places if name in WRITTEN and (name != "model" or "log" in arguments)]
    ledgers = [place for name, place in places if name == "ledger"]
    check_not_replaced(written, ledgers, [place for name, place in places if name in _READ])


def check_named_once(json: str, words: Sequence[str]) -> None:
    """Refuse to write JSON, of what went wrong, to a place that other words of a command name, too, or over a file of
    anything else: the words may be those of a command that could not be understood."""
    place = Path(json)
    named = [word.partition("=")[2] if word.startswith("--") else word.removeprefix("@") for word in words]
    if sum(_same(Path(name), place) for name in named if name) > 1:
        raise OutputError("This would overwrite another file of this command.", path=place)
    _check_json(place)


def _check_json(place: Path) -> None:
    """Refuse to write JSON over a file of anything else than a result of before, which ends with what it is about."""
    try:
        if not place.is_file() or not (size := place.stat().st_size):
            return
        with place.open("rb") as file:
            file.seek(max(0, size - _TAIL))
            ours = b'"veilog": "' in file.read()
    except OSError:
        return  # whether it can be written is looked at by who writes it
    if not ours:
        raise OutputError(
            "This would overwrite a file that is no result of veilog.", path=place, advice="Give another file."
        )


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
