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
from veilog.methods._events.assemble import Details
from veilog.privacy.account.figures import up
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.strength import STRENGTHS
from veilog.privacy.domain import Domain
from veilog.privacy.persons import columns_of_persons, owners
from veilog.privacy.unit import Unit
from veilog.releasing.owner import said
from veilog.releasing.owner.columns import HAVING_NONE, undeclared_values, unknown_times
from veilog.releasing.request import ReleaseRequest

__all__ = [
    "UNBOUNDED",
    "Uncounted",
    "accountable",
    "beyond_length",
    "exposed",
    "formulas",
    "is_of_account",
    "is_of_persons",
    "namesakes",
    "notes_for_owner",
    "of_persons",
    "tells_loss",
    "uncounted",
    "uncounted_cases",
    "undeclared_activities",
    "unentered",
    "unprotected_persons",
]

UNBOUNDED = "Nothing bounds beforehand what it costs, so a ledger with a budget would refuse it."
_NO_LEDGER = "It is entered in no ledger."
_UNUSED = "were not used."
_NAMED = 5
_LONGEST_NAME = 40
_COLUMNS = 3


def notes_for_owner(
    log: EventLog | StoredLog | Variants, planned: ReleaseRequest, *, in_ledger: bool
) -> tuple[str, ...]:
    """Return the notes on a planned release of these cases, the gravest first."""
    variants = log if isinstance(log, Variants) else log.variants
    notes = []
    if planned.part is not None and variants.cases == 0:
        notes.append(said.NO_CASE.format(value=planned.part))
    notes += undeclared_activities(variants, planned.public)
    notes += beyond_length(variants, planned.public)
    if not isinstance(log, Variants):
        notes += undeclared_values(log, planned)
        notes += unknown_times(log) if planned.wanted.times else []
        notes += of_persons(log, planned.unit)
    if not in_ledger:
        notes.append(unentered(planned.delta, bounded=planned.bounded))
    return tuple(notes)


def formulas(released: Variants, details: Details | None) -> tuple[str, ...]:
    """Return a note on released texts that programs for spreadsheets would run; numbers are none. They are written as
    they are: what was put before them would be part of the label for everybody else."""
    columns = () if details is None else (*details.columns.cases.values(), *details.columns.events.values())
    values = (value for column in columns if _is_text(column.type) for value in pc.unique(column).to_pylist())
    texts = dict.fromkeys([*released.labels, *values])
    found = [text for text in texts if text and len(text) > 1 and text[0] in "=+-@\t\r" and not _is_number(text)]
    named = ", ".join(repr(text[:_LONGEST_NAME]) for text in found[:_NAMED])
    return (said.FORMULAS.format(names=named + (" …" if len(found) > _NAMED else "")),) if found else ()


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def exposed(log: EventLog | StoredLog | Variants, guarantee: Guarantee) -> tuple[str, ...]:
    """Return a note where the level by the cases of the log is lower than the one that may be published."""
    cases = (log if isinstance(log, Variants) else log.variants).cases
    among = replace(guarantee, cases=cases)
    found = among.weighed
    if found is None or STRENGTHS.index(among.strength) <= STRENGTHS.index(guarantee.strength):
        return ()
    return (
        said.EXPOSED.format(
            cases=f"{cases:,}",
            level=among.strength,
            delta=up(guarantee.delta),
            exposed=up(found.exposed, 2),
            enough=up(found.enough),
        ),
    )


def unentered(delta: float | Fraction, *, bounded: bool = True) -> str:
    """Return the note that nothing keeps account of what was spent; an account refuses what is not ``bounded``."""
    advice = f"{accountable(delta)} keeps account of all releases." if bounded else UNBOUNDED
    return f"{_NO_LEDGER} {advice}"


def accountable(delta: float | Fraction) -> str:
    """Return the command that begins an account of releases such as one with this delta."""
    return f"`veilog ledger set LOG --epsilon BUDGET{' --delta BUDGET' if delta else ''}`"


def is_of_account(note: str) -> bool:
    """Return whether a note is about an account that there is not: what a release is comes before that."""
    return any(part in note for part in (accountable(0)[:-1], UNBOUNDED))


def is_of_persons(note: str) -> bool:
    """Return whether a note is about persons with several cases, which a decision says, too."""
    return note.startswith(_start(said.SINGLE))


def namesakes(account: Account) -> str:
    """Return the note that the ledger has other accounts of the same file name, whose releases are not in this one's
    sums; nothing where it has none."""
    if not account.namesakes:
        return ""
    numbers = ", ".join(map(str, account.namesakes))
    several = "other accounts" if len(account.namesakes) > 1 else "another account"
    return (
        f"This ledger has {several} named {account.name} ({numbers}): if these are the same people, put both on one: "
        f"veilog ledger set LOG --account {account.namesakes[0]}."
    )


def tells_loss(note: str) -> bool:
    """Return whether a note says that something of the log was left out."""
    return any(part in note for part in (_UNUSED, _start(said.NO_CASE), HAVING_NONE))


def _start(sentence: str) -> str:
    """What stands before its first placeholder."""
    return sentence.partition("{")[0]


def of_persons(log: EventLog | StoredLog, unit: Unit) -> list[str]:
    """Return notes on whose cases a release does not use, or on whom it does not protect."""
    return unprotected_persons(log) if unit.name == "case" else uncounted_cases(log, unit)


def unprotected_persons(log: EventLog | StoredLog) -> list[str]:
    """Return a note on columns by which persons seem to have several cases, where a release protects single cases."""
    found = person_columns(log)
    if not found:
        return []
    return [said.SINGLE.format(columns="; ".join(str(column) for column in found[:_COLUMNS]))]


def uncounted_cases(log: EventLog | StoredLog, unit: Unit) -> list[str]:
    """Return notes on the cases that name no person, or several, and on the persons with more cases than count; and on
    how many cases are not used for that."""
    found = uncounted(log, unit)
    if found is None:
        return []
    notes = _unnamed(found.nobody, found.several, found.cases, unit)
    if not found.over:
        return notes
    sentence = said.UNCOUNTED_ONE if found.over == 1 else said.UNCOUNTED
    numbers = {"persons": f"{found.persons:,}", "over": f"{found.over:,}", "most": f"{unit.most_cases:,}"}
    named = found.cases - found.nobody - found.several
    return [*notes, sentence.format(**numbers, left=f"{found.left:,}", cases=f"{named:,}")]


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


def _unnamed(nobody: int, several: int, cases: int, unit: Unit) -> list[str]:
    """What became of the cases that name nobody, and of those that name several people."""
    own = unit.unnamed == "own"
    one, more = (said.OWN_ONE, said.OWN) if own else (said.NOBODY_ONE, said.NOBODY)
    told = ((nobody, one, more), (several, said.SEVERAL_ONE, said.SEVERAL))
    numbers = {"cases": f"{cases:,}", "column": repr(unit.column)}
    return [(one if n == 1 else more).format(unnamed=f"{n:,}", **numbers) for n, one, more in told if n]


def undeclared_activities(variants: Variants, declared: Domain) -> list[str]:
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
    sentence = said.UNDECLARED_MORE if len(missing) > _NAMED else said.UNDECLARED
    note = (said.UNDECLARED_ONE if len(missing) == 1 else sentence).format(
        activities=f"{len(missing):,}",
        counted=shown,
        more=f"{len(missing) - _NAMED:,}",
        lost=f"{sum(lost.values()):,}",
        events=f"{variants.events:,}",
    )
    return [note]


def beyond_length(variants: Variants, declared: Domain) -> list[str]:
    """Return a note on cases that are longer than declared, and how many events that costs beside those of activities
    that are not declared."""
    if declared.longest is None:
        return []
    fitting = replace(declared, max_length=None).fit(variants)
    if int(fitting.lengths.max(initial=0)) <= declared.longest:  # which may be more than numpy's numbers hold
        return []
    over = np.maximum(fitting.lengths - declared.longest, 0)
    cases, events = int(fitting.counts[over > 0].sum()), int((fitting.counts * over).sum())
    sentence = said.BEYOND_ONE if declared.longest == 1 else said.BEYOND
    numbers = {"cut": f"{cases:,}", "cases": f"{variants.cases:,}", "longest": f"{declared.longest:,}"}
    return [sentence.format(**numbers, lost=f"{events:,}", events=f"{variants.events:,}")]
