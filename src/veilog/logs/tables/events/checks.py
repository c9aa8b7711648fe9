"""What may be wrong with the rows of a table, checked piece by piece: names, activities, timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._language import gettext_noop
from veilog._typing import BoolArray
from veilog.logs.findings import Findings, Policy
from veilog.logs.tables.cells.columns import is_text
from veilog.logs.tables.cells.times import Times

__all__ = ["LineOf", "RowFindings", "blank", "check_absent", "check_bad", "check_names", "count_times"]

LineOf = Callable[[int], int | None]
NO_NUMBERS: Mapping[str, int] = {}


@dataclass(frozen=True)
class RowFindings:
    """Where findings about rows go, and how a row is named to the user."""

    findings: Findings
    line_of: LineOf | None = None
    start: int = 0

    def add(self, rule: str, mask: BoolArray, example: str) -> Policy:
        """One finding for all rows of a mask; the example is the first one."""
        first = self.start + int(mask.argmax())
        line = None if self.line_of is None else self.line_of(first)
        shown = f"{example} (row {first + 1})" if line is None else example
        return self.findings.add(rule, shown, line=line, count=int(mask.sum()))

    def where(self, row: int) -> str:
        """A row of this piece in the user's words."""
        line = None if self.line_of is None else self.line_of(self.start + row)
        return f"row {self.start + row + 1}" if line is None else f"line {line}"


def check_names(
    names: Any, labels: Any, keep: BoolArray, rows: RowFindings, inexact: BoolArray | None = None
) -> tuple[Any, BoolArray]:
    """Apply the rules for rows without a case or an activity, or whose case has an ``inexact`` name, to those kept so
    far; a kept row without a case is a case of its own, named by its place."""
    if inexact is not None and (inexact := inexact & keep).any():
        rows.add("inexact-case-name", inexact, _shorten(names[int(inexact.argmax())].as_py()))
    nameless = blank(names) & keep
    if nameless.any():
        policy = rows.add("case-without-name", nameless, "a row has no case")
        if policy == "drop":
            keep = keep & ~nameless
        else:
            numbers = pa.array(np.flatnonzero(nameless) + rows.start + 1).cast(pa.string())
            prefix = "row "
            own = pc.binary_join_element_wise(prefix, numbers, "")
            while pc.any(pc.is_in(names, own)).as_py():  # never merge with a case that happens to be called so
                prefix = "nameless " + prefix
                own = pc.binary_join_element_wise(prefix, numbers, "")
            names = pc.replace_with_mask(names.combine_chunks(), pa.array(nameless), own)
            names = names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([names])
    silent = blank(labels) & keep
    if silent.any():
        rows.add("event-without-activity", silent, "a row has no activity")
        keep = keep & ~silent
    return names, keep


def check_bad(times: Times, text: Any, keep: BoolArray, rows: RowFindings) -> BoolArray:
    """Apply the rule for unreadable timestamps to the rows kept so far."""
    bad = times.bad & keep
    if bad.any():
        example = "a time outside the years 1 to 9999"
        if is_text(text.type):
            example = _shorten(text[int(bad.argmax())].as_py())
        if rows.add("bad-timestamp", bad, example) == "drop":
            keep = keep & ~bad
    return keep


def check_absent(times: Times, keep: BoolArray, rows: RowFindings) -> BoolArray:
    """Apply the rules for rows without a timestamp: none has one, or only some lack it. Rows are left out only where
    the owner says so, and then whatever other rows have, so that no case decides about another one."""
    absent = ~times.known & ~times.bad & keep
    if absent.any():
        dropped = rows.findings.policy("missing-timestamp") == "drop"
        if not dropped and not ((times.known | times.bad) & keep).any():
            rows.add("no-timestamps", absent, "the column of timestamps is empty")
        elif rows.add("missing-timestamp", absent, "a row has no timestamp") == "drop":
            keep = keep & ~absent
    return keep


def count_times(
    findings: Findings,
    timed: int,
    *,
    naive: int = 0,
    offsets: Iterable[int] = (),
    cut: int = 0,
    epochs: Mapping[str, int] = NO_NUMBERS,
) -> None:
    """The remarks about zones, precision and units of this many timestamps."""
    offsets = sorted(offsets)
    findings.note_zones(told=bool(offsets or epochs) or timed > naive, missing=naive > 0)
    if naive:
        findings.add("timestamp-without-zone", gettext_noop("timestamps are read as UTC"), count=naive)
    if len(offsets) > 1:
        shown = ", ".join(f"{'-' if o < 0 else '+'}{abs(o) // 60:02d}:{abs(o) % 60:02d}" for o in offsets)
        findings.add("mixed-time-zones", f"offsets {shown}", count=max(timed, 1))
    if cut:
        findings.add("precision-lost", gettext_noop("timestamps are cut to microseconds"), count=cut)
    if epochs:
        units = " and ".join(sorted(epochs, key=lambda unit: -epochs[unit]))
        findings.add("epoch-numbers", f"{units} since 1970", count=sum(epochs.values()))


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def blank(text: Any) -> BoolArray:
    """Where there is no name."""
    mask: BoolArray = pc.fill_null(pc.equal(text, ""), True).to_numpy()
    return mask
