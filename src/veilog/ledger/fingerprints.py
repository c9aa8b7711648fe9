"""What the logs of an account are recognised by."""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

import numpy as np

from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants

__all__ = ["Data", "fingerprint"]

Data: TypeAlias = EventLog | StoredLog | Variants


def fingerprint(data: Data) -> bytes:
    """What a log is recognised by: SHA-256 over how many cases have which multiset of activities.

    It does not depend on the file or its format, on the order of rows, cases, or events at the same time, on names of
    cases, further attributes, and cases without events, which not every format can hold. Only a keyed digest of it is
    ever kept.
    """
    variants = data if isinstance(data, Variants) else data.variants
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    bags = variants.codes[np.lexsort((variants.codes, owner))]
    counts = np.where(variants.lengths > 0, variants.counts, 0)
    canonical = Variants.from_arrays(variants.labels, bags, variants.offsets, counts)
    parts = (
        json.dumps(canonical.labels).encode(),
        canonical.lengths.astype("<i8").tobytes(),
        canonical.counts.astype("<i8").tobytes(),
        canonical.codes.astype("<i4").tobytes(),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
