"""Files that appear whole or not at all: written beside their place under another name, then renamed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from veilog.errors import OutputError, ParameterError, VeilogError

try:
    import fcntl
except ModuleNotFoundError:  # Windows: nobody can tell there that nobody writes any more
    fcntl = None  # type: ignore[assignment]


Naming = Callable[[str, Callable[[], None]], None]
"""Told the SHA-256 of a whole file, and what gives it its name: it does that, together with what has to go with it."""
_PART = ".veilog-{}.part"
_ABANDONED = 86_400
"""Seconds after which what nobody locks is nobody's any more: not all file systems tell of locks of other machines."""
_LARGEST = 64 << 20
_PATIENCE = 5.0
"""Seconds in which somebody must write to a pipe that is read."""
_PAUSE = 0.02
_FIRST = 1 << 16


@contextlib.contextmanager
def atomic_target(
    path: str | os.PathLike[str], naming: Naming | None = None, *, private: bool = False, overwrite: bool = True
) -> Iterator[BinaryIO]:
    """A binary file that becomes ``path`` when the block ends well, and vanishes when it does not, whatever the reason.

    A ``private`` one may be read by its owner alone, whatever was there before.

    It lies beside ``path`` until then, so that the last step is one rename, which ``naming`` does, if it is given. What
    a process left there that was killed is removed by one that writes into the folder a day later. Unless ``overwrite``
    allows it, no file is replaced, nor one that appears while this one is written.
    """
    target = check_writable(path, overwrite=overwrite)
    _clear(target.parent)
    temporary = _unfinished(target)
    try:
        try:
            with _held(temporary, 0o600 if private else 0o666) as file:
                if target.exists() and not private:
                    with contextlib.suppress(OSError):
                        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
                digest = None if naming is None else _digest(file)
                if fcntl is None:
                    file.close()  # Windows names no file that is open; elsewhere it is held until it has its name
                name = partial(_named, temporary, target, overwrite=overwrite)
                if naming is None or digest is None:
                    name()
                else:
                    naming(digest, name)
        except VeilogError:
            raise
        except OSError as error:
            raise OutputError("file-not-writable", path=os.fspath(path), reason=reason(error)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _held(temporary: Path, mode: int) -> io.BufferedRandom:
    """A new file, locked as long as it is open, which tells others that somebody writes it."""
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks, on which nobody removes anything
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fdopen(descriptor, "w+b")


def _clear(folder: Path) -> None:
    """Remove the unfinished files in a folder that nobody writes any more."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for left in folder.glob(_PART.format("*")):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _ABANDONED:
                    _remove_unlocked(left)


def _remove_unlocked(left: Path) -> None:
    descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left.unlink()
    finally:
        os.close(descriptor)


def _digest(file: io.BufferedRandom) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _named(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(target)
    else:
        try:
            os.link(temporary, target)
        except OSError:  # taken, or a file system without links: there the moment between look and name stays open
            if target.exists():
                raise _taken(target) from None
            temporary.rename(target)
    with contextlib.suppress(OSError):  # where the system lets no folder be opened
        _sync_folder(target.parent)


def path_of(given: object, parameter: str, advice: str = "") -> Path:
    """Return a path that was given as text or as a path; :class:`ParameterError` for what names no file."""
    if isinstance(given, str | os.PathLike):
        return Path(given)
    code = "file-name-none" if given is None else "file-name-not-path"
    raise ParameterError(code, parameter=parameter, advice=advice or None, kind=type(given).__name__)


def _taken(path: str | os.PathLike[str]) -> OutputError:
    return OutputError("file-not-replaced", path=os.fspath(path))


def check_absent(path: str | os.PathLike[str]) -> None:
    """Raise :class:`OutputError` if a file is here already; devices and pipes are no files to replace."""
    if os.path.isfile(path):  # noqa: PTH113 - which refuses no name that is too long, or holds a zero
        raise _taken(path)


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
    """Raise :class:`OutputError` now if a file could not be written here later; returns where a link leads."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise OutputError("file-is-directory", path=os.fspath(path))
        if not target.parent.is_dir():
            raise OutputError("folder-not-there", path=os.fspath(path), parent=target.parent)
        if target.exists() and not target.is_file():
            raise OutputError("file-is-device", path=os.fspath(path))
        if target.exists() and not os.access(target, os.W_OK):
            raise OutputError("file-exists", path=os.fspath(path))
        if target.exists() and not overwrite:
            raise _taken(path)
        probe = _unfinished(target)
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        finally:
            probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError("file-not-writable", path=str(path), reason=reason(error)) from error
    return target


def _unfinished(path: Path) -> Path:
    """A name in the same folder, which nothing has. What is called so, a day old and not locked is removed by whoever
    writes there next."""
    return path.with_name(_PART.format(secrets.token_hex(8)))


def claim(temporary: Path, place: Path) -> None:
    """Give a whole file its name, unless the name is taken; raises OSError where that cannot be made durable."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        return
    except OSError:  # a file system without links: the moment between the look and the renaming stays open
        if not place.exists():
            temporary.rename(place)
    if os.name == "posix":
        _sync_folder(place.parent)


def locks_hold(folder: Path) -> bool | None:
    """Return whether a lock on a file in this folder keeps a second descriptor out, as it does on a file system that
    heeds locks; None where that cannot be tried."""
    if fcntl is None:
        return None
    place = folder / _PART.format(secrets.token_hex(8))
    try:
        first = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    second = -1
    try:
        second = os.open(place, os.O_RDWR)
        return _locked(first) and not _locked(second)
    finally:
        os.close(first)
        if second >= 0:
            os.close(second)
        place.unlink(missing_ok=True)


def _locked(descriptor: int) -> bool:
    """Lock a whole file for this descriptor alone; locks of SQLite are of processes, so one process sees none there."""
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            whole = struct.pack("@hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def content_of(path: Path) -> bytes:
    """Return what is in a file of a kind that people write by hand, a list, a map or a model, or in a pipe, such as a
    shell makes of ``<(command)``; OSError for a device, which may have no end, and for more than any of these has."""
    if path.is_fifo():
        begun, pipe = opened_pipe(path)
        with pipe:
            content = begun + pipe.read(_LARGEST + 1 - len(begun))
    elif not path.is_file() and not path.is_dir() and path.exists():
        raise OSError(errno.EINVAL, "it is no regular file")
    else:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(errno.EFBIG, f"it has more than {_LARGEST >> 20} MiB")
    return content


def opened_pipe(path: Path) -> tuple[bytes, BinaryIO]:
    """Open a named pipe to which somebody writes; return what came first, and the rest. OSError where nobody does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pipe = os.fdopen(descriptor, "rb")
    until = time.monotonic() + _PATIENCE
    begun = b""
    try:
        with contextlib.suppress(BlockingIOError):  # somebody will write
            while not (begun := os.read(descriptor, _FIRST)):
                if time.monotonic() > until:
                    raise OSError(errno.EPIPE, "it is a pipe to which nobody writes")
                time.sleep(_PAUSE)
        os.set_blocking(descriptor, True)
    except BaseException:
        pipe.close()
        raise
    return begun, pipe


def text_of(path: Path) -> str:
    """Return the text in UTF-8 of such a file; UnicodeDecodeError where it is none."""
    return io.TextIOWrapper(io.BytesIO(content_of(path)), encoding="utf-8-sig").read()


def mark(path: Path) -> tuple[int, int] | None:
    """Return what a file is told from an earlier one of its name by; None where there is none."""
    found = path.stat() if path.exists() else None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of what is in a file; None of what is no file."""
    if not path.is_file():  # before a pipe is opened, which waits for who writes to it
        return None
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def reason(error: OSError | ValueError) -> str:
    """Return what the system says went wrong, without numbers and names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _sync_folder(folder: Path) -> None:
    """Make a rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Where veilog keeps what outlives a command --------------------------------------------------------------------------

# Where veilog keeps what outlives a command: the data folder of its user, and the ledger in it.


LEDGER = "veilog.ledger"
"""The name of the ledger in a data folder."""
_NAMED_BY = "VEILOG_LEDGER"
_NONE = "none"


def data_folder() -> Path:
    """Return the folder of this user for what veilog keeps: of the pages, of the command and of Python."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = str(_home() / "Library" / "Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME") or str(_home() / ".local" / "share")
    return Path(home) / "veilog"


def default_ledger() -> Path | None:
    """Return the ledger of releases for which none is named: in the data folder, or where the environment variable
    VEILOG_LEDGER says; None where that is ``none``."""
    named = os.environ.get(_NAMED_BY, "").strip()
    if named.lower() == _NONE:
        return None
    return Path(named) if named else data_folder() / LEDGER


def made_folder(ledger: Path) -> Path:
    """Return the default ledger, in a folder that is there: one that has to be made is for its user alone."""
    try:
        if not ledger.parent.is_dir():
            ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError("ledger-folder-not-made", path=ledger.parent, reason=error.strerror or error) from error
    return ledger


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise OutputError("ledger-home-unknown") from error
