"""``--since last``: a release of what began since the last one, so that the next night makes up for one that failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.text import Text

from veilog.cli.ledger import Keeping
from veilog.cli.shared.budget import Budget
from veilog.cli.shared.common import Output
from veilog.cli.shared.details import Beyond
from veilog.ledger.ledger import Data
from veilog.ledger.spans import LastSpan, last_span
from veilog.releasing.plan import Plan

__all__ = ["following", "since_last"]

_LAST = "last"


def since_last(log: Path, keeping: Keeping, budget: Budget, beyond: Beyond) -> tuple[LastSpan | None, Beyond]:
    """Where the last release ended, if ``--since last`` asks for that, and the options with that day in its place. It
    is read off the ledger; of the log nothing is known yet."""
    if beyond.since != _LAST:
        return None, beyond
    ledger = keeping.of(log)
    last = last_span([] if ledger is None else ledger.show(), keeping.account)
    last.check(budget.unit)
    begun = replace(beyond, since=last.end)
    last.until(begun.end)
    return last, begun


def following(out: Output, planned: Plan, last: LastSpan | None, log: Data) -> Plan:
    """Say where a release begins, once its log is read; refused if that was read in another way than the last time.
    Return the plan with its days marked as those after the last release, so that the ledger looks again whether they
    are when it reserves: another job may have released them by then."""
    if last is None or planned.part is None:
        return planned
    last.check(planned.unit.column or planned.unit.name, log.read_as)
    out.show(Text(f"since {last.in_words}"))
    return replace(planned, part=replace(planned.part, follows=True))
