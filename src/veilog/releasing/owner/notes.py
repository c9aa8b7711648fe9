"""What the owner of a log should know about a release of it, computed from the raw log: for their eyes alone.

Nothing of this is in a release, its metadata, or anything made to be given away; see ``Release.owner_only``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.ledger.accounts import Account
from veilog.logs.eventlog import EventLog
from veilog.logs.facts import person_columns
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.messages import OwnerMessage
from veilog.methods._events.assemble import Details
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee, up
from veilog.privacy.domain import Domain
from veilog.privacy.persons import columns_of_persons, owners
from veilog.privacy.unit import Unit
from veilog.releasing.owner.columns import undeclared_values, unknown_times
from veilog.releasing.request import ReleaseRequest

_NAMED = 5
_LONGEST_NAME = 40
_COLUMNS = 3


def notes_for_owner(
    log: EventLog | StoredLog | Variants, planned: ReleaseRequest, *, in_ledger: bool
) -> tuple[OwnerMessage, ...]:
    """Return the notes on a planned release of these cases, the gravest first."""
    variants = log if isinstance(log, Variants) else log.variants
    notes: list[OwnerMessage] = []
    if planned.part is not None and variants.cases == 0:
        notes.append(OwnerMessage("no-case-in-part", value=planned.part))
    notes += undeclared_activities(variants, planned.public)
    notes += beyond_length(variants, planned.public)
    if not isinstance(log, Variants):
        notes += undeclared_values(log, planned)
        notes += unknown_times(log) if planned.wanted.times else []
        notes += of_persons(log, planned.unit)
    if not in_ledger:
        notes.append(unentered(planned.delta, bounded=planned.bounded))
    return tuple(notes)


def formulas(released: Variants, details: Details | None) -> tuple[OwnerMessage, ...]:
    """Return a note on released texts that programs for spreadsheets would run; numbers are none. They are written as
    they are: what was put before them would be part of the label for everybody else."""
    columns = () if details is None else (*details.columns.cases.values(), *details.columns.events.values())
    values = (value for column in columns if _is_text(column.type) for value in pc.unique(column).to_pylist())
    texts = dict.fromkeys([*released.labels, *values])
    found = [text for text in texts if text and len(text) > 1 and text[0] in "=+-@\t\r" and not _is_number(text)]
    named = ", ".join(repr(text[:_LONGEST_NAME]) for text in found[:_NAMED])
    return (OwnerMessage("texts-are-formulas", names=named + (" …" if len(found) > _NAMED else "")),) if found else ()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def exposed(log: EventLog | StoredLog | Variants, guarantee: Guarantee) -> tuple[OwnerMessage, ...]:
    """Return a note where the level by the cases of the log is lower than the one that may be published."""
    cases = (log if isinstance(log, Variants) else log.variants).cases
    among = replace(guarantee, cases=cases)
    found = among.weighed
    if found is None or STRENGTHS.index(among.strength) <= STRENGTHS.index(guarantee.strength):
        return ()
    return (
        OwnerMessage(
            "cases-exposed",
            cases=cases,
            level=among.strength,
            delta=up(guarantee.delta),
            exposed=up(found.exposed, 2),
            enough=up(found.enough),
        ),
    )


def unentered(delta: float | Fraction, *, bounded: bool = True) -> OwnerMessage:
    """Return the note that nothing keeps account of what was spent; an account refuses what is not ``bounded``."""
    if not bounded:
        return OwnerMessage("in-no-ledger-unbounded")
    return OwnerMessage("in-no-ledger-with-delta" if delta else "in-no-ledger")


OF_ACCOUNTS = frozenset({"in-no-ledger", "in-no-ledger-with-delta", "in-no-ledger-unbounded"})
"""Notes about an account that there is not: what a release is comes before that."""
OF_PERSONS = frozenset({"cases-of-persons"})
"""Notes about persons with several cases."""
OF_LOSSES = frozenset(
    {
        *("no-case-in-part", "persons-over-bound", "one-person-over-bound", "one-case-of-nobody", "cases-of-nobody"),
        *("one-case-of-several", "cases-of-several", "cases-cut", "cases-cut-to-one-event"),
        *("one-activity-undeclared", "some-activities-undeclared", "many-activities-undeclared"),
        *("one-value-undeclared", "some-values-undeclared", "many-values-undeclared"),
    }
)
"""Notes that something of the log was left out."""


def namesakes(account: Account) -> OwnerMessage | None:
    """Return the note that the ledger has other accounts of the same file name, whose releases are not in this one's
    sums; None where it has none."""
    if not account.namesakes:
        return None
    return OwnerMessage(
        "account-namesakes" if len(account.namesakes) > 1 else "account-namesake",
        name=account.name,
        numbers=", ".join(map(str, account.namesakes)),
        first=account.namesakes[0],
    )


def of_persons(log: EventLog | StoredLog, unit: Unit) -> list[OwnerMessage]:
    """Return notes on whose cases a release does not use, or on whom it does not protect."""
    return unprotected_persons(log) if unit.name == "case" else uncounted_cases(log, unit)


def unprotected_persons(log: EventLog | StoredLog) -> list[OwnerMessage]:
    """Return a note on columns by which persons seem to have several cases, where a release protects single cases."""
    found = person_columns(log)
    if not found:
        return []
    return [OwnerMessage("cases-of-persons", columns="; ".join(str(column) for column in found[:_COLUMNS]))]


def uncounted_cases(log: EventLog | StoredLog, unit: Unit) -> list[OwnerMessage]:
    """Return notes on the cases that name no person, or several, and on the persons with more cases than count; and on
    how many cases are not used for that."""
    found = uncounted(log, unit)
    if found is None:
        return []
    notes = _unnamed(found.nobody, found.several, found.cases, unit)
    if not found.over:
        return notes
    named = found.cases - found.nobody - found.several
    note = OwnerMessage(
        "one-person-over-bound" if found.over == 1 else "persons-over-bound",
        persons=found.persons,
        over=found.over,
        most=unit.most_cases,
        left=found.left,
        cases=named,
    )
    return [*notes, note]


class Uncounted(NamedTuple):
    """The cases that a release does not use because of whom it protects."""

    cases: int
    nobody: int
    """Cases that name no person."""
    several: int
    """Cases that name several."""
    persons: int
    over: int
    """Persons with more cases than count,"""
    left: int
    """and their cases beyond those."""
    lost: int
    """All cases that are not used."""


def uncounted(log: EventLog | StoredLog, unit: Unit) -> Uncounted | None:
    """Return the cases that do not count for this unit; None where no column tells persons."""
    column = unit.column
    if column is None:
        return None
    found = list(log.each(lambda piece, _first: owners(piece, column), columns_of_persons(log.shape, column)))
    whose = pa.chunked_array([some.named for some in found], pa.string())
    several = sum(int(some.several.sum()) for some in found)
    cases = pc.value_counts(whose.drop_null()).field("counts").to_numpy(zero_copy_only=False)
    over = cases[cases > unit.most_cases]
    left, nobody = int((over - unit.most_cases).sum()), whose.null_count - several
    lost = left + several + (0 if unit.unnamed == "own" else nobody)
    return Uncounted(len(whose), nobody, several, cases.size, over.size, left, lost)


def _unnamed(nobody: int, several: int, cases: int, unit: Unit) -> list[OwnerMessage]:
    """What became of the cases that name nobody, and of those that name several people."""
    one, more = ("one-case-of-its-own", "cases-of-their-own")
    if unit.unnamed != "own":
        one, more = ("one-case-of-nobody", "cases-of-nobody")
    told = ((nobody, one, more), (several, "one-case-of-several", "cases-of-several"))
    found = ((n, one if n == 1 else more) for n, one, more in told if n)
    return [OwnerMessage(code, unnamed=n, cases=cases, column=repr(unit.column)) for n, code in found]


def undeclared_activities(variants: Variants, declared: Domain) -> list[OwnerMessage]:
    """Return a note on activities of the log that a declaration leaves out, and how many events that costs."""
    if declared.alphabet is None:
        return []
    missing = sorted(set(variants.labels) - set(declared.alphabet))
    if not missing:
        return []
    events = np.zeros(len(variants.labels), dtype=np.int64)
    np.add.at(events, variants.codes, np.repeat(variants.counts, variants.lengths))
    lost = {label: int(n) for label, n in zip(variants.labels, events.tolist(), strict=True) if label in missing}
    shown = ", ".join(f"{name} ({lost[name]:,})" for name in sorted(lost, key=lambda name: -lost[name])[:_NAMED])
    code = "many-activities-undeclared" if len(missing) > _NAMED else "some-activities-undeclared"
    return [
        OwnerMessage(
            "one-activity-undeclared" if len(missing) == 1 else code,
            activities=len(missing),
            counted=shown,
            more=len(missing) - _NAMED,
            lost=sum(lost.values()),
            events=variants.events,
        )
    ]


def beyond_length(variants: Variants, declared: Domain) -> list[OwnerMessage]:
    """Return a note on cases that are longer than declared, and how many events that costs beside those of activities
    that are not declared."""
    if declared.longest is None:
        return []
    fitting = replace(declared, max_length=None).fit(variants)
    if int(fitting.lengths.max(initial=0)) <= declared.longest:  # which may be more than numpy's numbers hold
        return []
    over = np.maximum(fitting.lengths - declared.longest, 0)
    cases, events = int(fitting.counts[over > 0].sum()), int((fitting.counts * over).sum())
    return [
        OwnerMessage(
            "cases-cut-to-one-event" if declared.longest == 1 else "cases-cut",
            cut=cases,
            cases=variants.cases,
            longest=declared.longest,
            lost=events,
            events=variants.events,
        )
    ]
