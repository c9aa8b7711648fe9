"""Notes and losses of a release from the raw log, for the data owner alone.

Nothing of this is in a release, its metadata, or anything made to be shared; see ``Release.owner_only``. It has notes
on the log and its columns and the losses of a release. It also enters releases in a ledger and has the warnings of
their account. :mod:`veilog.releasing.account_notes` has warnings from other releases, which age.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._files import default_ledger, make_folder, path_of
from veilog._language import share_in_percent
from veilog.errors import ParameterError, VeilogError, nearest
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import Ledger
from veilog.ledger.store import Data
from veilog.logs.eventlog import TIMESTAMP, EventLog, encode_texts
from veilog.logs.facts import person_columns
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.variants import Variants
from veilog.messages import OwnerMessage
from veilog.methods._events.assemble import Details
from veilog.methods.method import Progress
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee, up
from veilog.privacy.cases import attribute_column
from veilog.privacy.domain import Domain, Values
from veilog.privacy.persons import columns_of_persons, owners
from veilog.privacy.unit import Unit
from veilog.releasing.account_notes import entered_warnings, uncounted_warning, unentered_message
from veilog.releasing.losses import Loss, events_of, losses_by_list
from veilog.releasing.request import LedgerChoice, ReleaseRequest, end_of_range
from veilog.releasing.result import Release

_NAMED = 5
_LONGEST_NAME = 40
_COLUMNS = 3
_LONG, _SOME = 10, 20
"""Fewest events of a long variant, and fewest such variants. Logs of other processes share few of these."""


def notes_for_owner(
    log: EventLog | StoredLog | Variants, planned: ReleaseRequest, *, in_ledger: bool
) -> tuple[OwnerMessage, ...]:
    """Return the notes on a planned release of these cases, the gravest first."""
    variants = variants_of(log)
    notes: list[OwnerMessage] = []
    if planned.subset is not None and variants.cases == 0:
        notes.append(OwnerMessage("no-case-in-subset", value=planned.subset))
    notes += undeclared_activities(variants, planned.public)
    notes += length_messages(variants, planned.public)
    if not isinstance(log, Variants):
        notes += undeclared_values(log, planned)
        notes += unknown_times(log) if planned.wanted.times else []
        notes += person_messages(log, planned.unit, returning=bool(planned.wanted.persons))
    notes += broken_rule_messages(log, planned)
    if not in_ledger:
        notes.append(unentered_message(planned.delta, bounded=planned.bounded))
    return tuple(notes)


def formulas(released: Variants, details: Details | None) -> tuple[OwnerMessage, ...]:
    """Return a note on released texts, but not numbers, that spreadsheets would run.

    veilog writes them as they are: a prefix would be part of the label for every other program.
    """
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


def exposure_messages(log: EventLog | StoredLog | Variants, guarantee: Guarantee) -> tuple[OwnerMessage, ...]:
    """Return a note if the level by the cases of the log is below the published one."""
    cases = variants_of(log).cases
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


OF_PERSONS = frozenset({"cases-of-persons"})
"""Notes about persons with several cases."""


OF_LOSSES = frozenset(
    {
        *("no-case-in-subset", "persons-over-bound", "one-person-over-bound", "cases-for-returns-only"),
        *("one-case-without-person", "cases-without-person"),
        *("one-case-of-several", "cases-of-several", "cases-cut", "cases-cut-to-one-event"),
        *("one-activity-undeclared", "some-activities-undeclared", "many-activities-undeclared"),
        *("one-value-undeclared", "some-values-undeclared", "many-values-undeclared"),
    }
)
"""Notes that something of the log was left out."""


def person_messages(log: EventLog | StoredLog, unit: Unit, *, returning: bool = False) -> list[OwnerMessage]:
    """Return notes on cases that a release ignores, or persons it does not protect."""
    return unprotected_persons(log) if unit.name == "case" else uncounted_cases(log, unit, returning=returning)


def unprotected_persons(log: EventLog | StoredLog) -> list[OwnerMessage]:
    """Return a note on columns by which persons seem to have several cases.

    It is for releases that protect single cases.
    """
    found = person_columns(log)
    if not found:
        return []
    return [OwnerMessage("cases-of-persons", columns="; ".join(str(column) for column in found[:_COLUMNS]))]


def uncounted_cases(log: EventLog | StoredLog, unit: Unit, *, returning: bool = False) -> list[OwnerMessage]:
    """Return notes on cases without exactly one person, and on persons over the bound.

    They report how many cases are not used for that reason, or only for the query about ``returning`` persons.
    """
    found = uncounted_messages(log, unit)
    if found is None:
        return []
    notes = _nameless_messages(found.nobody, found.several, found.cases, unit)
    if not found.over:
        return notes
    named = found.cases - found.nobody - found.several
    over = "one-person-over-bound" if found.over == 1 else "persons-over-bound"
    note = OwnerMessage(
        "cases-for-returns-only" if returning else over,
        persons=found.persons,
        over=found.over,
        most=unit.most_cases,
        left=found.left,
        cases=named,
    )
    return [*notes, note]


class Uncounted(NamedTuple):
    """Cases that a release does not use because of its unit."""

    cases: int
    nobody: int
    """Cases that name no person."""
    several: int
    """Cases that name several."""
    persons: int
    over: int
    """Persons with more cases than count."""
    left: int
    """Cases of these persons beyond those that count."""
    lost: int
    """All cases that are not used."""


def uncounted_messages(log: EventLog | StoredLog, unit: Unit) -> Uncounted | None:
    """Return the cases that do not count for a unit; None without a person column."""
    column = unit.column
    if column is None:
        return None
    found = list(log.each(lambda piece, _first: owners(piece, column), columns_of_persons(log.shape, column)))
    whose = pa.chunked_array([some.named for some in found], pa.string())
    several = sum(int(some.several.sum()) for some in found)
    cases = pc.value_counts(whose.drop_null()).field("counts").to_numpy(zero_copy_only=False)
    over = cases[cases > unit.most_cases]
    left, nobody = int((over - unit.most_cases).sum()), whose.null_count - several
    lost = left + several + (0 if unit.without_person == "own" else nobody)
    return Uncounted(len(whose), nobody, several, cases.size, over.size, left, lost)


def _nameless_messages(nobody: int, several: int, cases: int, unit: Unit) -> list[OwnerMessage]:
    """Return notes on the cases that name no person and on those that name several."""
    one, more = ("one-case-of-its-own", "cases-of-their-own")
    if unit.without_person != "own":
        one, more = ("one-case-without-person", "cases-without-person")
    told = ((nobody, one, more), (several, "one-case-of-several", "cases-of-several"))
    found = ((n, one if n == 1 else more) for n, one, more in told if n)
    return [OwnerMessage(code, without_person=n, cases=cases, column=repr(unit.column)) for n, code in found]


def broken_rule_messages(log: EventLog | StoredLog | Variants, planned: ReleaseRequest) -> list[OwnerMessage]:
    """Return a note on each rule that cases of the log break.

    The released cases obey it all the same.
    """
    if planned.rules is None:
        return []
    found = planned.rules.broken_in(log)
    return [
        OwnerMessage(
            "one-case-breaks-rule" if cases == 1 else "cases-break-rule",
            cases=cases,
            share=share_in_percent(cases / found.cases),
            rule=rule.message,
        )
        for rule, cases in zip(planned.rules.items, found.each, strict=True)
        if cases
    ]


def undeclared_activities(variants: Variants, declared: Domain) -> list[OwnerMessage]:
    """Return a note on undeclared activities of the log, with the events they lose."""
    if declared.alphabet is None:
        return []
    missing = sorted(set(variants.labels) - set(declared.alphabet))
    if not missing:
        return []
    events = events_of(variants)
    lost = {label: events[label] for label in missing}
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


def length_messages(variants: Variants, declared: Domain) -> list[OwnerMessage]:
    """Return a note on cases that are longer than declared, with the events they lose.

    Events of undeclared activities are counted elsewhere.
    """
    cases, events = _count_cut(variants, declared)
    if not events:
        return []
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


_DAY = 86_400_000_000


def check_times(planned: ReleaseRequest, log: EventLog | StoredLog) -> None:
    """Refuse times for a log in which reading found none, before anything is asked.

    The released times would be noise alone and use epsilon. Only the data owner sees this refusal: nothing is released.
    """
    if planned.wanted.times and any(finding.rule == "no-timestamps" for finding in log.findings):
        raise ParameterError("timestamps-all-missing", parameter="times")


def unknown_times(log: EventLog | StoredLog) -> list[OwnerMessage]:
    """Return a note on events without a known time, or on times that carry only order."""
    if isinstance(log, EventLog) and log.artificial_times:
        return [OwnerMessage("times-artificial")]
    found = list(log.each(_times_of, ()))
    events, unknown = (sum(numbers) for numbers in list(zip(*found, strict=True))[:2]) if found else (0, 0)
    if events > unknown and all(dated for _, _, dated in found):
        return [OwnerMessage("times-are-days")]
    if not unknown:
        return []
    if unknown == events:
        return [OwnerMessage("no-time-known")]
    return [OwnerMessage("some-times-unknown", unknown=unknown, events=events, share=_share(unknown, events))]


def undeclared_values(log: EventLog | StoredLog, planned: ReleaseRequest) -> list[OwnerMessage]:
    """Return a note on each released attribute with values outside the declared ones."""
    notes: list[OwnerMessage] = []
    for name in planned.wanted.attributes:
        declared = planned.public.values_of(name)
        if declared is None:
            continue
        found = list(log.each(partial(_values_of, name, declared), (name,)))
        values = sum((values for values, _ in found), Counter[str]())
        outside, known = sum(n for _, n in found), sum(values.values())
        if outside and isinstance(declared[0], str):
            notes += _notes_on_values(name, tuple(str(value) for value in declared), values, outside)
        elif outside:
            notes.append(
                OwnerMessage(
                    "values-outside-range",
                    lost=outside,
                    known=known,
                    attribute=repr(name),
                    share=_share(outside, known),
                    low=end_of_range(declared[0]),
                    high=end_of_range(declared[1]),
                )
            )
    return notes


def likely_meant(unknown: Iterable[str], there: Iterable[str]) -> str:
    """Return some of these unknown names, each with the known name most like it."""
    those = list(there)
    return ", ".join([f"{name!r} → {near!r}" for name in unknown if (near := nearest(name, those))][:_NAMED])


def _notes_on_values(name: str, declared: tuple[str, ...], values: Counter[str], outside: int) -> list[OwnerMessage]:
    missing = sorted(set(values) - set(declared), key=lambda value: (-values[value], value))
    known = sum(values.values())
    code = "many-values-undeclared" if len(missing) > _NAMED else "some-values-undeclared"
    note = OwnerMessage(
        "one-value-undeclared" if len(missing) == 1 else code,
        attribute=repr(name),
        values=len(missing),
        counted=", ".join(f"{value} ({values[value]:,})" for value in missing[:_NAMED]),
        more=len(missing) - _NAMED,
        lost=outside,
        known=known,
        share=_share(outside, known),
    )
    near = likely_meant((value for value in declared if value not in values), missing)
    return [note, *([OwnerMessage("values-perhaps-meant", attribute=repr(name), names=near)] if near else [])]


def _times_of(log: EventLog, _first: bool) -> tuple[int, int, bool]:
    """Return the events, those without a time, and True if all others are midnight."""
    column = log.events.column(TIMESTAMP)
    micros = column.drop_null().cast(pa.int64()).to_numpy()
    return len(log), column.null_count, not (micros % _DAY).any()


def _values_of(name: str, declared: Values, log: EventLog, _first: bool) -> tuple[Counter[str], int]:
    """Return the values as text with their counts, and the number of undeclared ones.
    Numbers are counted together as one value."""
    column = attribute_column(log, name).drop_null()
    if isinstance(declared[0], str):
        column = encode_texts(column).drop_null() if pa.types.is_dictionary(column.type) else column.combine_chunks()
        counted = pc.value_counts(column)
        names = counted.field("values").cast(pa.string()).to_pylist()
        values = Counter(dict(zip(names, counted.field("counts").to_pylist(), strict=True)))
        return values, sum(n for value, n in values.items() if value not in declared)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return Counter(), 0  # of dates it is a range of days since the start of their case
    numbers = column.cast(pa.float64(), safe=False)
    beyond = pc.sum(pc.or_(pc.less(numbers, declared[0]), pc.greater(numbers, declared[1]))).as_py()
    return Counter({"": len(numbers)}), beyond or 0


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f}" if share >= 1 else "<1"


_EXPLAINED = 0.5
"""Share of a difference between log and release above which a reported loss already explains it."""


def losses_before(log: EventLog | StoredLog | Variants, planned: ReleaseRequest) -> tuple[Loss, ...]:
    """Return the losses that follow from a plan and the log, before anything is asked.

    The log has the cases of the planned subset. The losses are absent declared activities, and events or cases that are
    undeclared, too long, not counted or not read.
    """
    variants = variants_of(log)
    found = [*losses_by_list(events_of(variants), planned.public)]
    found.append(Loss("events-beyond-length", _count_cut(variants, planned.public)[1], variants.events))
    if not isinstance(log, Variants):
        left_out = uncounted_messages(log, planned.unit)
        found += [] if left_out is None else [Loss("cases-not-counted", left_out.lost, left_out.cases)]
        found += _dropped_rows(log, variants)
    found += _prior_overlap(variants, planned)
    return tuple(loss for loss in found if loss.notable)


def _prior_overlap(variants: Variants, planned: ReleaseRequest) -> Iterator[Loss]:
    """Yield the loss of a prior that may be this log or made of it.
    This holds if half of its long variants are in the prior. Then nothing protects these cases."""
    if planned.prior is None:
        return
    known = planned.prior.variants.to_dict()
    long = [sequence for sequence in variants.to_dict() if len(sequence) >= _LONG]
    same = sum(sequence in known for sequence in long)
    if len(long) >= _SOME and 2 * same >= len(long):
        yield Loss("variants-in-prior", same, len(long))


def losses_after(variants: Variants, released: Variants, before: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return the losses of a release: known ones, and those they do not explain.

    The latter are activities, cases and events of the log that the release lacks.
    """
    known = tuple(before)
    missing = len(set(variants.labels) - set(released.labels))
    found = (
        Loss("activities-not-released", missing, len(variants.labels)),
        Loss("cases-not-released", max(0, variants.cases - released.cases), variants.cases),
        Loss("events-not-released", max(0, variants.events - released.events), variants.events),
    )
    notable = (loss for loss in found if loss.notable)
    return known + tuple(loss for loss in notable if not any(_explains(cause, loss) for cause in known))


def _explains(cause: Loss, loss: Loss) -> bool:
    """Return True if a loss of the same kind of things is most of it.
    Cases that are left out take their events along."""
    kind, effect = cause.code.partition("-")[0], loss.code.partition("-")[0]
    return kind in (effect, "cases") and cause.lost / cause.of >= _EXPLAINED * loss.lost / loss.of


def _count_cut(variants: Variants, declared: Domain) -> tuple[int, int]:
    """Return how many cases the declared length cuts, and how many events it cuts off.
    Events of undeclared activities do not count."""
    if declared.longest is None:
        return 0, 0
    fitting = replace(declared, max_length=None).fit(variants)
    if int(fitting.lengths.max(initial=0)) <= declared.longest:  # which may be more than numpy's numbers hold
        return 0, 0
    over = np.maximum(fitting.lengths - declared.longest, 0)
    return int(fitting.counts[over > 0].sum()), int((fitting.counts * over).sum())


def _dropped_rows(log: EventLog | StoredLog, variants: Variants) -> Iterator[Loss]:
    for thing, there in (("event", variants.events), ("case", variants.cases)):
        dropped = sum(finding.count for finding in log.findings if finding.dropped_thing == thing)
        yield Loss("rows-not-read", dropped, dropped + there)


def chosen_ledger(choice: LedgerChoice, *, seeded: bool, progress: Progress | None = None) -> Ledger | None:
    """Return the ledger in which something is entered.

    A ``seeded`` run is an experiment, which is entered only in a ledger that is named.
    """
    if choice is False or (choice is None and seeded):
        return None
    if choice is None:
        place = default_ledger()
        return None if place is None else Ledger.open(make_folder(place), create=True, waiting=progress)
    return (
        choice if isinstance(choice, Ledger) else Ledger.open(path_of(choice, "ledger"), create=True, waiting=progress)
    )


def note_uncounted(
    log: Data, method: str, guarantee: Guarantee, place: Path | None = None, name: str | None = None, **asked: Any
) -> Account | None:
    """Note in a ledger that something was made of a log without a ledger.

    The default ``place`` is this user's ledger; ``name`` is that of the log's file. If the ledger cannot be written,
    nothing is noted: it must not stop a user who wants none.
    """
    with contextlib.suppress(VeilogError):
        ledger = default_ledger() if place is None else place
        if ledger is not None:
            kept = Ledger.open(make_folder(ledger), create=True, name=name)
            return kept.note_uncounted(log, method, guarantee, **asked)
    return None


def add_warnings(released: Release, log: Data, aside: Mapping[str, Any] | None, place: Path | None = None) -> Release:
    """Return a release with the warnings of its account.

    A release that was kept ``aside`` of every ledger is noted as not counted, with these entries, in the ledger at
    ``place``. The default is the user's ledger.
    """
    warnings: tuple[OwnerMessage, ...] = ()
    if released.entry is not None:
        warnings = entered_warnings(released.entry, log)
    elif aside is not None:
        account = note_uncounted(log, released.method, released.guarantee, place, **aside)
        warnings = () if account is None else uncounted_warning(account)
    if not warnings:
        return released
    return replace(released, owner_only=replace(released.owner_only, warnings=warnings))
