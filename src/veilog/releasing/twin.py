"""The sizes of a log, declared or found out with noise by questions that are paid for, and its twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import numpy as np

from veilog._notebook import card, facts, paragraph
from veilog._plain import InJson, ToJson
from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.ledger.ledger import EntryRef, settling
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic.twins import BINS, HEADS, MOST_CASES, LengthDistribution, Sizes, log_of, twin_of
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.account.budgets import Number, parse_epsilon, whole_number
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import ONE_CASE, Unit, bounded
from veilog.releasing.owner import chosen_ledger, note_uncounted
from veilog.releasing.request import LedgerChoice, ReleaseRequest

_COUNT, _LENGTHS = Fraction(1, 5), Fraction(1, 2)
"""Of epsilon, for the number of cases where that is not known; and of the rest, for how many there are of each length.
What is left is for how concentrated they are."""
_HALF = Fraction(1, 2)


Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Twin(ToJson):
    """A made-up log of known sizes. There is nothing in it but the sizes."""

    sizes: Sizes
    guarantee: Guarantee | None = None
    """What finding the sizes out cost, and what that guarantees; None where they were declared."""
    seed: Annotated[int, InJson(left_out="always")] = 0
    labels: Annotated[tuple[str, ...] | None, InJson(left_out="always")] = None
    entry: Annotated[EntryRef | None, InJson(left_out="always")] = None

    @cached_property
    def log(self) -> EventLog:
        """The made-up log, with times of no meaning."""
        return log_of(twin_of(self.sizes, self.seed, self.labels), self.seed)

    def __repr__(self) -> str:
        return f"Twin({self.sizes.cases:,} made-up cases of about {self.sizes.length:g} events)"

    def _repr_html_(self) -> str:
        """Return the sizes, and what finding them out cost."""
        told = [(name, value) for name, value in self.sizes.to_json().items() if isinstance(value, int | float)]
        cost = "The sizes were declared; nothing was queried." if self.guarantee is None else self.guarantee.in_words()
        return card("Made-up log", facts(told), paragraph(cost, "s"))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the made-up log; the suffix says how."""
        files.write(self.log, path, overwrite=overwrite)


def twin(
    log: files.AnyLog | StoredLog | None = None,
    *,
    cases: int | None = None,
    length: float | None = None,
    activities: int | Iterable[str] | None = None,
    variants: int | None = None,
    frequent: float | None = None,
    epsilon: Number | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    without_person: str | None = None,
    ledger: LedgerChoice = None,
    number: int = 0,
    seed: int | None = None,
) -> Twin:
    """Return a made-up log of the same sizes, on which methods and budgets can be tried for nothing.

    The sizes are declared: about how many ``cases``, how many events one has (``length``), how many ``activities``, or
    their names, how many ``variants``, and the share of the cases that have the most ``frequent`` one; the log is not
    looked at. Or they are found out with five noisy questions to a ``log``, which cost ``epsilon`` together; what is
    declared beside that counts. ``unit``, ``max_cases`` and ``without_person`` are whom these protect, as in
    :func:`veilog.release`: of a person's cases as many count as in a release, and the sizes are of those that count. A
    twin has no people; its releases are like those of the log with the unit ``person`` and the same ``max_cases``. The
    cost is entered in a ``ledger`` as there. ``number`` tells the first twin of these
    sizes from the second; ``seed`` makes the questions repeatable, for experiments, and their guarantee "none".
    """
    labels = None if activities is None or isinstance(activities, int) else tuple(activities)
    how_many = activities if isinstance(activities, int) else None if labels is None else len(labels)
    declared: dict[str, Any] = {
        "cases": cases,
        "length": length,
        "activities": how_many,
        "variants": variants,
        "frequent": frequent,
    }
    protected = Unit.of(unit, max_cases, without_person)
    if (found := whole_number(number)) is None or found < 0:
        raise ParameterError("sizes-number-not-whole", parameter="number", number=number)
    if epsilon is None:
        if protected is not ONE_CASE:
            raise ParameterError("sizes-unit-without-epsilon", parameter="unit")
        if ledger:
            raise ParameterError("sizes-ledger-without-epsilon", parameter="ledger")
        if log is not None and None in (cases, length):
            raise ParameterError("sizes-log-without-epsilon", parameter="epsilon")
        return Twin(sizes_of(**declared), seed=found, labels=labels)
    if log is None:
        raise ParameterError("sizes-epsilon-without-log", parameter="log")
    known = {name: value for name, value in declared.items() if value is not None}
    sizes_of(**{"cases": MOST_CASES, "length": 0} | known)  # what no log can have is refused before anything is asked
    held, eps = files.as_log(log), parse_epsilon(epsilon)
    curator = _curator(held, protected, seed)
    ask = partial(ask_sizes, curator, protected.of_one_case(eps, Fraction(0))[0], cases=cases)
    sizes, guarantee, entry = asked_of(held, "twin", curator, ask, epsilon=eps, unit=protected, ledger=ledger)
    if variants is not None:
        known["variants"] = min(variants, sizes.cases)  # by noise there may be fewer cases than that
    if frequent is not None:
        known["held"] = None  # of what is declared there is no answer
    return Twin(replace(sizes, **known), guarantee, seed=found, labels=labels, entry=entry)


def _curator(log: EventLog | StoredLog | Variants, unit: Unit, seed: int | None) -> Curator:
    source = noise.operating_system() if seed is None else noise.seeded(seed)
    return Curator(bounded(log, unit, source), randomness=source)


def asked_of(
    log: EventLog | StoredLog | Variants,
    what: str,
    curator: Curator,
    ask: Callable[[], Answered],
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    unit: Unit,
    ledger: LedgerChoice,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Answered, Guarantee, EntryRef | None]:
    """Ask a log a few questions and enter that in a ledger as a release is; return the answer, what it cost, and where
    it is entered."""
    seeded = curator.randomness.seed is not None
    kept = chosen_ledger(ledger, seeded=seeded)
    noted: dict[str, Any] = {"parameters": {**parameters, **unit.in_ledger}, "unit": unit.column or unit.name}
    entry = None
    if kept is not None:
        entry = kept.reserve(log, what, epsilon=None if seeded else epsilon, delta=delta, begins=True, **noted)
        curator.before_first(entry.begin)
    derive = partial(curator.guarantee, nominal_epsilon=epsilon, nominal_delta=delta or None)
    with settling(entry, derive, lambda: curator.contacted):
        found = ask()
    if ledger is False and not seeded:
        note_uncounted(log, what, derive(), **noted)
    return found, derive(), None if entry is None else entry.entered


def sizes_of_log(log: EventLog | StoredLog | Variants, planned: ReleaseRequest) -> Sizes:
    """Return the exact sizes of what a release of a log would look at, its subset and the cases of a person that count:
    raw numbers, for its owner alone."""
    looked_at = bounded(log, planned.unit, noise.operating_system(), planned.subset).variants
    if planned.subset is not None and not looked_at.cases:
        raise ParameterError(
            "sizes-subset-without-case", parameter="subset", subset=planned.subset, in_words=planned.subset.in_words
        )
    return Sizes.of(looked_at)


def ask_sizes(
    curator: Curator, epsilon: Fraction, *, cases: int | None = None, within: Fraction | None = None
) -> Sizes:
    """Return the sizes by a curator's answers: how many cases there are, how many have which length, and what share of
    them the most frequent variants have, of one, ten and a hundred. ``cases`` is their number where it is known: by an
    answer for the epsilon ``within``, or else without noise."""
    if cases is None:
        within = epsilon * _COUNT
        epsilon -= within
        cases = curator.count(within, purpose="cases-for-twin")
    each = epsilon * (1 - _LENGTHS) / len(HEADS)
    bins = curator.histogram(_length_bins, len(BINS), epsilon * _LENGTHS, purpose="lengths-for-twin")
    found = min(MOST_CASES, max(1, cases))
    heads: dict[str, Any] = {}
    held = []
    least = 1 / found
    for name, number in HEADS.items():
        answer = curator.concentration(number, _HALF, each, purpose="frequent-variants-for-twin")
        # It is twice their cases less all cases; more variants hold no fewer cases.
        held.append((answer + found) / 2)
        least = heads[name] = min(1.0, max(least, held[-1] / found))
    scale = 1 / float(epsilon * _LENGTHS)
    answers = tuple(bins.tolist())
    believed = LengthDistribution.of(answers, scale, found)
    # The standard deviation of Laplace noise is its scale times the square root of 2.
    beside = math.sqrt(2) / (2 * float(each))
    off = (math.sqrt(2) / float(within) if within else 0.0, beside, math.sqrt(2) * scale)
    lengths = tuple(believed.shares.tolist())
    said: dict[str, Any] = {"off": off, "answers": answers, "held": tuple(held)}
    return Sizes(cases=found, length=believed.length, lengths=lengths, **heads, **said)


def _length_bins(sequences: Sequences) -> IntArray:
    return np.asarray(np.searchsorted(BINS, sequences.lengths, side="right") - 1, dtype=np.int64)


def sizes_of(**declared: float | None) -> Sizes:
    """Return what somebody declares; :class:`ParameterError` says what is lacking."""
    lacking = [name for name in ("cases", "length") if declared.get(name) is None]
    if lacking:
        raise ParameterError("sizes-unknown", parameter=lacking[0], names=" and ".join(lacking))
    return Sizes(**declared)  # type: ignore[arg-type]
