"""Releases that wait next to their ledger until a file of theirs is entered.

``LEDGER.kept/NUMBER.parquet`` is there before the first file of a release is written. It goes when that file is
entered. So a process that is killed, a full disk or a closed pipe loses no release: veilog writes it again from there,
without using epsilon. The file has what the recipient would get, and its folder is for the data owner alone.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from veilog._files import data_folder, mark
from veilog._process import defer_stops
from veilog.errors import InputError, OutputError, VeilogError
from veilog.ledger.ledger import EntryRef
from veilog.logs import files
from veilog.logs.input.source import Progress

BESIDE = "models"
"""Name of the second log that a release may have."""
_SUFFIX = ".parquet"
_held: set[EntryRef] = set()
"""Releases that an outer block of this process keeps."""


def _folder(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.kept")


def _place(entry: EntryRef) -> Path:
    return _folder(entry.path) / f"{entry.number}{_SUFFIX}"


@contextlib.contextmanager
def keep_until_written(
    entry: EntryRef | None, write: Callable[[Path], None], target: Path | None = None
) -> Iterator[None]:
    """Keep a release in a file until this block has written and entered one.

    ``write`` writes it. If the block fails, the kept file stays, and the error names it, unless the ``target`` is
    there.
    """
    if entry is None or entry in _held or entry.written:
        yield
        return
    place, before = _place(entry), None if target is None else mark(target)
    with contextlib.suppress(VeilogError), defer_stops() as begin:  # it is written to its target all the same
        begin()  # Ctrl-C waits: until this is there the release is in memory alone
        _create_folder(place.parent)
        write(place)
        for file in _files_of(place):
            file.chmod(0o600)
    _held.add(entry)
    try:
        yield
    except OutputError as error:
        if not place.exists() or (target is not None and mark(target) != before):
            raise
        raise OutputError(
            "release-waits-in-place",
            path=error.path,
            text=error.problem,
            place=place,
            how_to_write=writing_help(entry),
        ) from error
    finally:
        _held.discard(entry)
    remove_kept(entry)


def place_elsewhere() -> Path:
    """Return a new file for a release without a ledger whose target cannot be written."""
    place = data_folder() / "kept" / f"{secrets.token_hex(4)}{_SUFFIX}"
    _create_folder(place.parent)
    return place


def writing_help(entry: EntryRef) -> str:
    """Return the words that name the command by which a release that waits is written."""
    return f"veilog ledger write {shlex.quote(str(entry.path))} {entry.number} TARGET writes it, for nothing"


def waiting_releases(ledger: Path) -> tuple[int, ...]:
    """Return the numbers of the releases that wait next to a ledger."""
    with contextlib.suppress(OSError):
        names = [place.stem for place in _folder(ledger).iterdir() if place.suffix == _SUFFIX]
        return tuple(sorted(int(name) for name in names if name.isdecimal()))
    return ()


def spool_file(entry: EntryRef) -> Path | None:
    """Return the file that is kept of a release; None where it does not wait."""
    place = _place(entry)
    return place if place.exists() else None


def write_kept(
    entry: EntryRef,
    target: Path,
    *,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write a waiting release to a file and enter that, which uses no epsilon.

    A second log that was made with it is written first.

    Returns:
        The files that were written.

    """
    place = _place(entry)
    if not place.exists():
        waiting = ", ".join(map(str, waiting_releases(entry.path)))
        raise InputError(
            "release-not-waiting" if waiting else "release-none-waiting",
            path=entry.path,
            number=entry.number,
            waiting=waiting,
        )
    pairs = [(place, target)]
    if (beside := files.named_after(place, BESIDE)).exists():
        pairs.insert(0, (beside, files.named_after(target, BESIDE)))
    for kept, file in pairs:
        naming = entry.naming(file, waiting=progress)
        how = {"overwrite": overwrite, "spreadsheet_safe": spreadsheet_safe}
        files.write_named(files.read(kept), file, lossy=True, naming=naming, **how)
    _remove(place)
    return tuple(file for _, file in pairs)


def remove_kept(entry: EntryRef) -> None:
    """Remove what waits of a release, once a file of it is entered."""
    if entry.written:
        _remove(_place(entry))


def _files_of(place: Path) -> list[Path]:
    return [file for file in (place, files.named_after(place, BESIDE)) if file.exists()]


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("folder-not-made", path=folder, reason=error.strerror or error) from error


def _remove(place: Path) -> None:
    """Remove what waited, and its folder when nothing more does."""
    with contextlib.suppress(OSError):
        for file in _files_of(place):
            file.unlink()
        place.parent.rmdir()
