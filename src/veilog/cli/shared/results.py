"""Results as JSON, apart from what commands load with numbers: what goes wrong while these are loaded is told, too."""

from __future__ import annotations

import contextlib
import datetime
import json
import sys

from veilog._files import atomic_target
from veilog._version import __version__
from veilog.cli.shared.terminal import CALL, put_out

__all__ = ["SCHEMA", "about", "write_json"]

SCHEMA = 1
"""The number of the form of what is written as JSON; it changes where a program would have to."""


def about() -> dict[str, object]:
    """Return what every result says of itself."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"schema": SCHEMA, "command": CALL.get().command, "veilog": __version__, "time": now}


def write_json(value: object, target: str) -> None:
    """Write a value as JSON to a file, or to standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        except UnicodeEncodeError:  # written as it is, what is escaped would be no JSON
            text = json.dumps(value, indent=2, allow_nan=False) + "\n"
        with contextlib.suppress(BrokenPipeError):  # whoever does not read on ends no work
            put_out(text)
    else:
        # Private: it holds what only the data owner may know.
        with atomic_target(target, private=True, overwrite=CALL.get().overwrite) as file:
            file.write(text.encode(errors="backslashreplace"))
