"""Where veilog keeps what outlives a command: the data folder of its user, and the ledger in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from veilog.errors import OutputError

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
