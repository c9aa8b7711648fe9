"""What a target must have room for, before a release is paid for."""

from __future__ import annotations

import shutil
from pathlib import Path

from veilog.errors import OutputError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import suffix_of
from veilog.logs.stored.store import StoredLog
from veilog.logs.tables.workbook import MOST_EVENTS
from veilog.logs.variants import Variants
from veilog.privacy.domain import FROM_LOG, Domain

_BYTES = {".xes": 400, ".csv": 120, ".tsv": 120}
_PACKED_BYTES = 40
"""Of an event in a file that is not compressed, and of one in any that is; as a rule it takes less."""


def check_room(target: Path, original: EventLog | StoredLog | Variants, *, whole: bool) -> None:
    """Refuse, before anything is paid for, what the disk or a sheet will hardly hold: a release of the whole log is
    about as large as that."""
    events = (original if isinstance(original, Variants) else original.variants).events
    if whole and suffix_of(target) == ".xlsx" and events > MOST_EVENTS:
        raise OutputError(
            f"A sheet of Excel holds {MOST_EVENTS:,} events. This log has more, and so would its release.",
            path=target,
            advice="Nothing was asked of the data. Write to a .csv or .parquet file, or release a part of the cases.",
        )
    needed = events * _BYTES.get(suffix_of(target), _PACKED_BYTES)
    if shutil.disk_usage(target.absolute().parent).free < needed:
        raise OutputError(
            f"The disk has no room for this release, which may take {-(-needed // 1_000_000):,} MB.",
            path=target,
            advice="Nothing was asked of the data. Free some space, or write to a .xes.gz or .parquet file.",
        )


def check_texts(target: Path, declared: Domain, original: EventLog | StoredLog | Variants) -> None:
    """Refuse, before anything is paid for, labels and values that the format cannot hold, as far as they are known."""
    labels = declared.alphabet or ()
    if declared.activities == FROM_LOG:
        labels = (original if isinstance(original, Variants) else original.variants).labels
    values = [value for given in declared.attributes.values() for value in given if isinstance(value, str)]
    files.check_texts(target, [*labels, *declared.attributes, *values])
