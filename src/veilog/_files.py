"""Files that appear whole or not at all, and the folder for veilog's own data.

A file is written in its folder under another name, and then renamed.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
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
except ModuleNotFoundError:  # Windows, where no lock shows whether the writer of a file still runs
    fcntl = None  # type: ignore[assignment]


Naming = Callable[[str, Callable[[], None]], None]
"""Receives the SHA-256 and the rename of a whole file, and renames it."""
_PART = ".veilog-{}.part"
_ABANDONED = 86_400
"""Seconds after which an unlocked file is abandoned: some file systems hide other machines' locks."""
_LARGEST = 64 << 20
_PATIENCE = 5.0
"""Seconds within which a writer must send something through a pipe."""
_PAUSE = 0.02
_FIRST = 1 << 16


@contextlib.contextmanager
def atomic_target(
    path: str | os.PathLike[str], naming: Naming | None = None, *, private: bool = False, overwrite: bool = True
) -> Iterator[BinaryIO]:
    """Yield a binary file that becomes ``path`` only if the block ends well.

    Otherwise it vanishes, whatever the reason. Until then it lies next to ``path``, so that the last step is one
    rename. If ``naming`` is given, it does that rename. Only its owner may read a ``private`` file, whatever was there
    before.

    A process that writes into the folder a day later removes what a killed one left there. Without ``overwrite``, no
    file is replaced, not one either that appears during the writing.
    """
    target = check_writable(path, overwrite=overwrite)
    _clear(target.parent)
    temporary = _temporary_path(target)
    try:
        try:
            with _create_locked(temporary, 0o600 if private else 0o666) as file:
                if target.exists() and not private:
                    with contextlib.suppress(OSError):
                        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
                digest = None if naming is None else _digest(file)
                if fcntl is None:
                    file.close()  # Windows names no file that is open; elsewhere it is held until it has its name
                name = partial(_rename, temporary, target, overwrite=overwrite)
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


def _create_locked(temporary: Path, mode: int) -> io.BufferedRandom:
    """Return a new file, locked while it is open, so that others see its writer."""
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks, on which no process removes anything
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fdopen(descriptor, "w+b")


def _clear(folder: Path) -> None:
    """Remove the unfinished files in a folder that no process writes any more."""
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


def _digest(file: io.BufferedReader | io.BufferedRandom) -> str:
    import hashlib  # here, as few commands need it

    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _rename(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(target)
    else:
        try:
            os.link(temporary, target)
        except OSError:  # taken, or a file system without links: there the moment between look and name stays open
            if target.exists():
                raise _path_taken_error(target) from None
            temporary.rename(target)
    with contextlib.suppress(OSError):  # where the system lets no folder be opened
        _sync_folder(target.parent)


def path_of(given: object, parameter: str, advice: str = "") -> Path:
    """Return the path that text or a path names; :class:`ParameterError` for the rest."""
    if isinstance(given, str | os.PathLike):
        return Path(given)
    code = "file-name-none" if given is None else "file-name-not-path"
    raise ParameterError(code, parameter=parameter, advice=advice or None, kind=type(given).__name__)


def _path_taken_error(path: str | os.PathLike[str]) -> OutputError:
    return OutputError("file-not-replaced", path=os.fspath(path))


def check_absent(path: str | os.PathLike[str]) -> None:
    """Raise :class:`OutputError` if a regular file (no device or pipe) exists here."""
    if os.path.isfile(path):  # noqa: PTH113 - which refuses no name that is too long, or holds a zero
        raise _path_taken_error(path)


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
    """Return where a path leads; :class:`OutputError` if no file can be written there."""
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
            raise _path_taken_error(path)
        probe = _temporary_path(target)
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        finally:
            probe.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise OutputError("file-not-writable", path=str(path), reason=reason(error)) from error
    return target


def _temporary_path(path: Path) -> Path:
    """Return a free name in the folder of ``path``, which :func:`_clear` recognises."""
    return path.with_name(_PART.format(os.urandom(8).hex()))


def claim(temporary: Path, place: Path) -> None:
    """Name a finished file, unless the name is taken; OSError if that is not durable."""
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
    """Return True if a lock in this folder keeps a second descriptor out.

    A file system that heeds locks does so. None if veilog cannot try it.
    """
    if fcntl is None:
        return None
    place = folder / _PART.format(os.urandom(8).hex())
    try:
        first = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    second = -1
    try:
        second = os.open(place, os.O_RDWR)
        return _lock(first) and not _lock(second)
    finally:
        os.close(first)
        if second >= 0:
            os.close(second)
        place.unlink(missing_ok=True)


def _lock(descriptor: int) -> bool:
    """Lock a whole file for a descriptor: SQLite's locks, of processes, show nothing."""
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
    """Return the content of a file that people write by hand, or of a pipe.

    Such a file is a list, a map or a model. A shell makes a pipe of ``<(command)``. OSError for a device, which may
    have no end, and for more content than any such file has.
    """
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
    """Open a named pipe; return its first bytes and the rest. OSError if unwritten."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pipe = os.fdopen(descriptor, "rb")
    until = time.monotonic() + _PATIENCE
    begun = b""
    try:
        with contextlib.suppress(BlockingIOError):  # a writer has opened the pipe and sent nothing yet
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
    """Return the UTF-8 text of such a file; UnicodeDecodeError if it is none."""
    return io.TextIOWrapper(io.BytesIO(content_of(path)), encoding="utf-8-sig").read()


def mark(path: Path) -> tuple[int, int] | None:
    """Return the inode and time by which a replaced file differs; None without a file."""
    found = path.stat() if path.exists() else None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file's content; None if there is no readable file."""
    if not path.is_file():  # before a pipe is opened, which waits for its writer
        return None
    try:
        with path.open("rb") as file:
            return _digest(file)
    except OSError:
        return None


def reason(error: OSError | ValueError) -> str:
    """Return the system's reason for an error, without numbers and names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _sync_folder(folder: Path) -> None:
    """Make a rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Where veilog keeps what outlives a command --------------------------------------------------------------------------


LEDGER = "veilog.ledger"
"""Name of the ledger in a data folder."""
_NAMED_BY = "VEILOG_LEDGER"
_NONE = "none"


def data_folder() -> Path:
    """Return this user's data folder, for the pages, the command and Python alike."""
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or str(_home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = str(_home() / "Library" / "Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME") or str(_home() / ".local" / "share")
    return Path(home) / "veilog"


def default_ledger() -> Path | None:
    """Return the ledger of releases for which none is named.

    It lies in the data folder, or where the environment variable VEILOG_LEDGER points. None if that is ``none``.
    """
    named = os.environ.get(_NAMED_BY, "").strip()
    if named.lower() == _NONE:
        return None
    return Path(named) if named else data_folder() / LEDGER


def make_folder(ledger: Path) -> Path:
    """Return the default ledger; make its folder, if missing, for its user alone."""
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
