"""Results on their way from a worker to the server and its store: as JSON, and back.

Nothing else writes or reads that JSON. It outlives a version of veilog: a record of an earlier one, in which some of
this was missing or lay elsewhere, is read as what it says.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Literal

from veilog._plain import Misfit, from_plain, to_plain
from veilog.web.jobs.outlook import Outlook
from veilog.web.jobs.read_log import ReadLog
from veilog.web.jobs.released_log import ReleasedLog

__all__ = ["Kind", "Result", "from_text", "to_text", "understood"]

Kind = Literal["read", "release", "try"]
"""What a job does with a log."""
Result = ReadLog | ReleasedLog | Outlook


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` if the text is none, of this version or another."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise Misfit("not a result")
    if kind == "try":
        return from_plain(Outlook, values, lenient=True)
    # Earlier versions wrote what was measured beside the rest.
    if kind == "read":
        earlier = {"measured": values} if "statistics" in values else {}
        return from_plain(ReadLog, {**earlier, **values}, lenient=True)
    earlier = {"beside": {**values, "kept": _kept(values.get("kept"))}} if "explorer" in values else {}
    return from_plain(ReleasedLog, {**earlier, **values}, lenient=True)


def _kept(lines: Any) -> Any:
    """Title, value and meaning of what a release kept; of one that an older veilog made, names and numbers only."""
    if not isinstance(lines, dict):
        return lines
    return [[name.replace("_", " "), _in_short(value), ""] for name, value in lines.items()]


def _in_short(value: float | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


@lru_cache(maxsize=64)
def understood(kind: Kind, text: str) -> Result | None:
    """The same result is asked for again and again while somebody looks at it. None: another version wrote it."""
    try:
        return from_text(kind, text)
    except ValueError:
        return None
