"""Facts of a report's page, gathered: writing the page computes nothing."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from veilog._language import gettext, gettext_noop, ngettext
from veilog.charts import comparison_svg, lasting
from veilog.errors import InputError, VeilogError
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import open_input, suffix_of
from veilog.logs.tables.excel import facts_in
from veilog.logs.variants import Variants
from veilog.measures import Comparison, Progress, UseCaseOptions, compare
from veilog.measures.disclosure import RiskResult, risk
from veilog.measures.durations import FEW, case_durations, spans
from veilog.measures.singling_out import inference, linkability, singling_out
from veilog.privacy.account.guarantee import STRENGTHS, Guarantee
from veilog.privacy.account.guessing_advantage import worth
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.checks import largest, meaning_of, meaning_of_pairs
from veilog.releasing.losses import Loss
from veilog.releasing.owner import losses_after
from veilog.releasing.result import Release
from veilog.report.comparison import (
    OF_EVERY_LOG,
    AttributeShown,
    UseCaseShown,
    attacks_shown,
    attributes_shown,
    judged_here,
    shown,
)
from veilog.report.decision import Decision, OwnerSide, decision_facts, owner_side
from veilog.report.explorer import Explorer, clean, explorer, short
from veilog.report.flow_map import FlowMap, arranged, draw_map, steps_of
from veilog.report.release_facts import Told, facts_of
from veilog.report.words import figure, percent_up, share_of, strength_in_words

COMPARED_AT_ONCE = 5_000
"""Number of variants a side up to which a report compares the logs itself."""
_TOO_MANY = gettext_noop("The logs have many variants, so this takes a while: veilog compare.")
_ANONYMIZATIONS, _HEAD = b"privacy:anonymizations", 1 << 20
_PICKED_FROM = (2, 5, 10, 100, 1_000, 100_000)
_RELEASES = (1, 2, 3, 5, 10)
_WORK = 5e7
_SAMPLES = 300
_QUANTILES = (
    (0, gettext_noop("shortest")),
    (5, gettext_noop("a quarter up to")),
    (10, gettext_noop("half up to")),
    (15, gettext_noop("three quarters up to")),
    (20, gettext_noop("longest")),
)


@dataclass(frozen=True)
class File:
    """A file of the release, with the digest that identifies it."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Inside:
    """The facts of an internal report, for the owner of the original only."""

    owner: OwnerSide
    losses: tuple[Loss, ...]
    """Losses of the log in the release."""
    cases: int
    variants: int
    events: int
    activities: int
    map: FlowMap
    """Map of original and release in one frame."""
    risk: tuple[tuple[RiskResult, RiskResult], ...]
    """Risks before and after, by kind and size of knowledge; only size 1 for many variants."""
    comparison: Comparison | None
    not_compared: str
    use_cases: tuple[UseCaseShown, ...]
    """Use cases of the release, if the logs are compared."""
    seeming: str
    """Column taken for persons if none was chosen; the reader must see a wrong guess."""
    chart: str | None
    """Durations and cases under way of both logs, as SVG."""


@dataclass(frozen=True)
class Facts:
    """The facts of a page; ``inside`` is None for the shareable one."""

    told: Told
    decision: Decision
    files: tuple[File, ...]
    """Files that the release was written to, if they are known."""
    written: str
    """Day on which the page is written, in UTC."""
    cases: int
    variants: int
    events: int
    activities: int
    empty: int
    """Number of released cases without an event."""
    explorer: Explorer
    map: FlowMap
    durations: tuple[tuple[str, str], ...]
    """Durations of the released cases, in words."""
    durations_of: str
    """A sentence or two on the number of cases with durations."""
    no_durations: str
    attributes: tuple[AttributeShown, ...]
    inside: Inside | None


def gather_facts(
    told: Told,
    released: Release | EventLog,
    original: EventLog | Variants | None,
    comparison: Comparison | None = None,
    progress: Progress | None = None,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | LedgerStatus | None = None,
    person: str | bool = True,
) -> Facts:
    """Return the facts of a release, with those of its original and ledger if given.

    ``person`` is the column of the original's persons (:class:`veilog.measures.UseCaseOptions`).
    """
    say = progress or (lambda text, fraction: None)
    variants = released.variants
    before = None if original is None else original if isinstance(original, Variants) else original.variants
    log = None if not told.timed else released if isinstance(released, EventLog) else released.log
    say("Reporting: flow", None)
    steps = steps_of(variants, log)
    lasts, of_cases, reason = durations(log)
    if before is not None:
        told = told.among(before.cases)
    inside = None
    if original is not None and before is not None:
        if comparison is None and max(len(before), len(variants)) <= COMPARED_AT_ONCE:
            say("Reporting: utility", None)
            asked = UseCaseOptions(person=person)
            comparison = compare(original, variants if log is None else log, asked=asked, progress=progress)
        use_cases: tuple[UseCaseShown, ...] = ()
        if comparison is not None and variants.events and before.events:
            judged = comparison.use_cases or judged_here(original, variants if log is None else log, say, person)
            use_cases = shown(judged.values())
        say("Reporting: risk", None)
        owner = owner_side(original, status_today(account, released))
        first = steps_of(before, original if isinstance(original, EventLog) else None)
        both = draw_map(first, arranged([first, steps]), steps)
        inside = _confidential_facts(released, before, comparison, use_cases, owner, both, person=person is True)
    return Facts(
        **_release_facts(told, variants, None if inside is None else inside.owner, files),
        explorer=explorer(variants, before),
        map=draw_map(steps, arranged([steps])),
        durations=lasts,
        durations_of=of_cases,
        no_durations=reason,
        attributes=attributes_shown(
            _attribute_log(released, log), original if isinstance(original, EventLog) else None
        ),
        inside=inside,
    )


def _confidential_facts(
    released: Release | EventLog,
    before: Variants,
    comparison: Comparison | None,
    use_cases: tuple[UseCaseShown, ...],
    owner: OwnerSide,
    process_map: FlowMap,
    *,
    person: bool,
) -> Inside:
    """Return the facts of the data owner's page alone."""
    variants = released.variants
    return Inside(
        owner=owner,
        losses=released.owner_only.losses if isinstance(released, Release) else losses_after(before, variants, ()),
        cases=before.cases,
        variants=len(before),
        events=before.events,
        activities=len(before.labels),
        map=process_map,
        risk=disclosure_results(before, variants),
        comparison=comparison,
        not_compared="" if comparison else gettext(_TOO_MANY),
        use_cases=use_cases,
        seeming=owner.persons.column if use_cases and person and owner.persons is not None else "",
        chart=None if comparison is None or comparison.case_durations is None else comparison_svg(comparison),
    )


def _release_facts(
    told: Told, variants: Variants, owner: OwnerSide | None, files: Sequence[str | os.PathLike[str]]
) -> dict[str, Any]:
    """Return the facts of every page about a release."""
    return {
        "told": told,
        "decision": decision_facts(told, variants.cases, owner),
        "files": files_of(files),
        "written": today(),
        "cases": variants.cases,
        "variants": len(variants),
        "events": variants.events,
        "activities": len(variants.labels),
        "empty": int(variants.counts[variants.lengths == 0].sum()),
    }


def dossier_facts(
    released: Release | EventLog,
    original: EventLog | Variants | None,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | LedgerStatus | None = None,
    control: EventLog | Variants | None = None,
    person: str | bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the facts for the templates of a dossier.

    With the original, ``attacked`` has the results of attack tests; without it, it is None. They are compared with the
    same on the people of ``control``, or else with what the cases of others than the same ``person`` reveal.
    """
    told, variants = facts_of(released), released.variants
    owner = attacked = None
    if original is not None:
        (progress or (lambda text, fraction: None))("Attacking original and release", None)
        owner = owner_side(original, status_today(account, released))
        told = told.among(owner.cases)
        attacked = {"owner": owner, **_attack_facts(told, released, original, control, person)}
    g = told.guarantee
    proven = g.proven and g.strength != STRENGTHS[-1]
    shown = "; ".join(f"{name} = {short(value, 80)}" for name, value in told.parameters[:40])
    return {
        **_release_facts(told, variants, owner, files),
        "g": g,
        "proven": proven,
        "meaning": meaning_of(g),
        "software": short(told.software, 80),
        "method": short(told.method, 80),
        "parameters": shown,
        "once": int((variants.counts == 1).sum()),
        "smallest": int(variants.counts.min()) if len(variants) else 0,
        "attributes": _attribute_names(released),
        "odds": _odds(g) if proven else {},
        "releases": _several_releases(g) if proven else [],
        "attacked": attacked,
    }


def _odds(g: Guarantee) -> dict[int, tuple[str, str]]:
    """Return the chance to pick the right one of so many, and the most after."""
    pair = g.epsilon or 0.0, g.delta or 0.0
    return {n: (share_of(f"{100 / n:g}"), percent_up(largest([pair], 1 / n))) for n in _PICKED_FROM}


def _several_releases(g: Guarantee) -> list[tuple[str, ...]]:
    """Return the epsilon, delta, gain and level of several such releases together."""
    rows = []
    for number in _RELEASES:
        pair = (g.epsilon or 0.0) * number, min(1.0, (g.delta or 0.0) * number)
        strength = worth((Fraction(pair[0]), Fraction(pair[1])), cases=g.cases or 0)
        gap = percent_up(meaning_of_pairs([pair]).membership_test_gap)
        rows.append((f"{number}", *map(figure, pair), gap, strength_in_words(strength)))
    return rows


def _attack_facts(
    told: Told,
    released: Release | EventLog,
    original: EventLog | Variants,
    control: EventLog | Variants | None,
    person: str | bool,
) -> dict[str, Any]:
    """Return the attack tests and the original's size; an impossible attack is None."""
    before = original if isinstance(original, Variants) else original.variants
    second: EventLog | Variants = released.variants
    if told.timed:
        second = released if isinstance(released, EventLog) else released.log
    # Only the log identifies persons. Times of a release that is variants alone reveal nothing.
    tried: list[Any] = []
    why = ""
    for attack in (singling_out, linkability, inference):
        try:
            tried.append(attack(original, second, control=control, person=person))
        except VeilogError as error:
            tried.append(None)
            why = why or str(error)
    return {
        "variants": len(before),
        "events": before.events,
        "tried": tried,
        "attacks": attacks_shown(*tried),
        "control": next((found.control for found in tried if found is not None), "others' cases"),
        "why_not": why,
        "disclosed": disclosure_results(before, released.variants)
        if before.events and released.variants.events
        else (),
    }


def _attribute_names(released: Release | EventLog) -> list[str]:
    """Return the attributes that were released."""
    if isinstance(released, EventLog):
        names = [*released.cases.column_names, *released.events.column_names]
    elif released.full is not None:
        names = [*released.full.cases.column_names, *released.full.events.column_names]
    elif released.details is not None:
        names = [*released.details.columns.cases, *released.details.columns.events]
    else:
        names = []
    return list(dict.fromkeys(name for name in names if name not in OF_EVERY_LOG))


def _attribute_log(released: Release | EventLog, timed: EventLog | None) -> EventLog | None:
    """Return the released log if it may have attributes; else it need not be made."""
    if isinstance(released, EventLog):
        return released
    if timed is not None:
        return timed
    return released.log if released.variants.cases and (released.details or released.full) else None


def files_of(paths: Sequence[str | os.PathLike[str]]) -> tuple[File, ...]:
    """Return the files of a release with their SHA-256.

    A log that does not state how it was made private is refused.
    """
    found = []
    for path in map(Path, paths):
        try:
            if path.is_file() and not _states_how(path):
                raise InputError("report-not-of-release", path=os.fspath(path))
            with path.open("rb") as file:
                found.append(File(clean(path.name), hashlib.file_digest(file, "sha256").hexdigest()))
        except OSError as error:
            raise InputError("report-release-not-readable", path=os.fspath(path)) from error
    return tuple(found)


def _states_how(path: Path) -> bool:
    """Return True if a file has privacy metadata, or no place for it.

    XES has it before the first case.
    """
    suffix = suffix_of(path)
    if suffix == ".parquet":
        try:
            return _ANONYMIZATIONS in str(pq.read_schema(path).metadata).encode()
        except pa.ArrowInvalid:
            return False
    if suffix == ".xlsx":
        return _ANONYMIZATIONS in facts_in(path)
    if suffix not in (".xes", ".xes.gz"):
        return True
    with open_input(path, limit=None) as stream:
        return _ANONYMIZATIONS in stream.read(_HEAD)


def status_today(given: Account | LedgerStatus | None, released: Release | EventLog) -> LedgerStatus | None:
    """Return the ledger's facts on other releases, dated today.

    If none are given, they are those of the release itself.
    """
    standing = LedgerStatus(given) if isinstance(given, Account) else given or ledger_status(released)
    return None if standing is None else replace(standing, as_of=today())


def today() -> str:
    """Return today's date in UTC, as ISO 8601 writes it."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def durations(log: EventLog | None) -> tuple[tuple[tuple[str, str], ...], str, str]:
    """Return the durations of released cases and their number, or a reason."""
    if log is None:
        return (), "", gettext("The release has no times: its timestamps carry the order of events and nothing else.")
    try:
        both = spans(log, "released")
    except VeilogError as error:
        return (), "", str(error)
    found = case_durations(both, both).released
    lasts = tuple((gettext(name), lasting(found.quantiles[i])) for i, name in _QUANTILES)
    counted = ngettext(
        "These are the durations of {n} released case.", "These are the durations of {n} released cases.", found.cases
    )
    few = gettext("They are too few to estimate how long cases last.") if found.cases < FEW else ""
    return lasts, f"{counted} {few}".strip(), ""


def disclosure_results(before: Variants, after: Variants) -> tuple[tuple[RiskResult, RiskResult], ...]:
    """Return the disclosure by few activities, estimated if exact ones take too long."""
    pairs: list[tuple[RiskResult, RiskResult]] = []
    sizes = (1, 2, 3) if max(len(before), len(after)) <= 4 * COMPARED_AT_ONCE else (1,)
    for kind in ("set", "sequence"):
        both = (risk(log, kind, sizes, work_limit=_WORK, samples=_SAMPLES) for log in (before, after))
        pairs += zip(*both, strict=True)
    return tuple(pairs)


def ledger_status(released: Release | EventLog, *, named: bool = True) -> LedgerStatus | None:
    """Return the present facts of the ledger that has a release; None if none has it."""
    if isinstance(released, EventLog) or released.entry is None:
        return None
    return LedgerStatus.of_entry(Ledger(released.entry.path), released.entry.number, named=named)
