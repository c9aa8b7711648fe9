"""Results on their way from a worker to the server and its store: as JSON, and back.

Nothing else writes or reads that JSON.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Literal

from veilog._plain import from_plain, to_plain
from veilog.web.jobs.outlook import Outlook
from veilog.web.jobs.read_log import ReadLog
from veilog.web.jobs.released_log import ReleasedLog

__all__ = ["Kind", "Result", "from_text", "to_text", "understood"]

Kind = Literal["read", "release", "try"]
"""What a job does with a log."""
Result = ReadLog | ReleasedLog | Outlook
_RESULTS: dict[Kind, type[Result]] = {"read": ReadLog, "release": ReleasedLog, "try": Outlook}


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` if the text is none."""
    return from_plain(_RESULTS[kind], json.loads(text))


@lru_cache(maxsize=64)
def understood(kind: Kind, text: str) -> Result | None:
    """The same result is asked for again and again while somebody looks at it. None: nobody understands it."""
    try:
        return from_text(kind, text)
    except ValueError:
        return None
