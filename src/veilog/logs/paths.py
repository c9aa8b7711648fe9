"""Which files a name stands for: one file, all that match a pattern, or all in a folder and the folders in it."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from veilog._files import reason
from veilog.errors import InputError

__all__ = ["SUFFIXES", "format_of", "log_files", "several", "suffix_of"]

SUFFIXES = (".xes", ".xes.gz", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def log_files(name: str) -> list[Path]:
    """The files of one log, all of one known format, in the order of their names."""
    paths = _matching(name)
    formats = {format_of(path) for path in paths}
    if len(formats) > 1:
        raise InputError(f"These files have different formats: {', '.join(sorted(formats))}.", path=name)
    if len(paths) > 1 and formats == {".xes"}:
        raise InputError("Several XES files cannot be read as one log.", path=name)
    return paths


def several(name: str | os.PathLike[str]) -> bool:
    """Whether a name stands for more than one file, by what it is."""
    try:
        return Path(name).is_dir() or (glob.has_magic(str(name)) and not Path(name).exists())
    except (OSError, ValueError):
        return False


def _matching(name: str) -> list[Path]:
    if not several(name):
        return [Path(name)]
    if Path(name).is_dir():
        found = sorted(path for path in Path(name).rglob("*") if path.is_file() and not _hidden(path.relative_to(name)))
        if not found:
            raise InputError("There is no file in this folder.", path=name)
        return found
    found = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207
    found = [path for path in found if not path.is_dir()]
    if not found:
        raise InputError("No file matches this pattern.", path=name)
    return found


def _hidden(path: Path) -> bool:
    """Whether a file is not data, by the custom of those who write such folders: ``_SUCCESS``, ``.part``."""
    return any(part.startswith((".", "_")) for part in path.parts)


def suffix_of(path: Path) -> str | None:
    """The known suffix in lower case without ``.gz``, or None."""
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            return suffix.removesuffix(".gz")
    return None


def format_of(path: Path) -> str:
    """The format of a file that is there, by its suffix."""
    try:
        if path.is_dir():
            raise InputError(
                "This is a directory, not a file.",
                path=path,
                advice="Give the log file in it; a folder of tables is read where variants are enough.",
            )
        if several(path):
            raise InputError("Several files are read together only where variants are enough.", path=path)
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"The file cannot be read: {reason(error)}.", path=str(path)) from error
    kind = suffix_of(path)
    if kind is None:
        raise InputError(
            "The suffix is not known." if exists else "There is no such file.",
            path=os.fspath(path),
            advice=f"Known suffixes: {', '.join(SUFFIXES)}.",
        )
    if not exists:
        raise InputError("There is no such file.", path=os.fspath(path))
    return kind
