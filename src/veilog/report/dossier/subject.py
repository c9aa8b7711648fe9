"""What a dossier is about: the facts of a release, and for its owner what attacks achieved."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from veilog.errors import VeilogError
from veilog.ledger.accounts import Account
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import Progress
from veilog.measures.disclosure import RiskResult
from veilog.measures.singling_out import Inference, Linkability, SinglingOut, inference, linkability, singling_out
from veilog.privacy.account.guarantee import Guarantee
from veilog.releasing.meaning import Meaning, meaning_of
from veilog.releasing.owner.standing import Standing
from veilog.releasing.result import Release
from veilog.report.attacks import AttackShown, attacks_shown
from veilog.report.attributes import OF_EVERY_LOG
from veilog.report.decision import Decision, OwnerSide, decided, owner_side
from veilog.report.facts import File, disclosed, today, written_today
from veilog.report.told import Told, told_by_file, told_by_release

__all__ = ["Attacked", "Subject", "subject_of"]


@dataclass(frozen=True)
class Attacked:
    """What the owner's edition has beside: exact numbers of the original, and attacks on it and on the release."""

    owner: OwnerSide
    variants: int
    events: int
    attacks: tuple[AttackShown, ...]
    """In words."""
    singled: SinglingOut | None
    linked: Linkability | None
    inferred: Inference | None
    why_not: str
    """Why there was no attack, where there was none."""
    disclosed: tuple[tuple[RiskResult, RiskResult], ...]
    """Disclosure by a few known activities, of the original and of the release."""


@dataclass(frozen=True)
class Subject:
    """A release, as the parts of a dossier speak of it; ``attacked`` is None in the edition for outside."""

    told: Told
    decision: Decision
    meaning: Meaning | None
    cases: int
    variants: int
    events: int
    activities: int
    once: int
    """Released variants of one case."""
    smallest: int
    """Cases of the rarest released variant."""
    empty: int
    """Released cases without an event."""
    attributes: tuple[str, ...]
    files: tuple[File, ...]
    written: str
    attacked: Attacked | None

    @property
    def guarantee(self) -> Guarantee:
        return self.told.guarantee

    @property
    def proven(self) -> bool:
        """Whether there is a guarantee that is worth something."""
        return self.guarantee.proven and self.guarantee.strength != "none in practice"

    @property
    def pair(self) -> tuple[float, float]:
        """Epsilon and delta; only where they are proven."""
        return self.guarantee.epsilon or 0.0, self.guarantee.delta or 0.0


def subject_of(
    released: Release | EventLog,
    original: EventLog | Variants | None,
    files: tuple[File, ...],
    account: Account | Standing | None,
    progress: Progress | None,
    control: EventLog | Variants | None = None,
    person: str | bool = True,
) -> Subject:
    """Return what a dossier says of this release; with the original, what attacks achieved, beside the same on the
    people of ``control`` where some were held out, else beside what the cases of others than the same ``person``
    tell."""
    told = told_by_release(released) if isinstance(released, Release) else told_by_file(released)
    variants = released.variants
    attacked = None
    if original is not None:
        say = progress or (lambda text, fraction: None)
        say("Attacking original and release", None)
        owner = owner_side(original, written_today(account, released))
        told = told.among(owner.cases)
        attacked = _attacked(told, released, original, owner, control, person)
    return Subject(
        told=told,
        decision=decided(told, variants.cases, None if attacked is None else attacked.owner),
        meaning=meaning_of(told.guarantee),
        cases=variants.cases,
        variants=len(variants),
        events=variants.events,
        activities=len(variants.labels),
        once=int((variants.counts == 1).sum()),
        smallest=int(variants.counts.min()) if len(variants) else 0,
        empty=int(variants.counts[variants.lengths == 0].sum()),
        attributes=_attributes(released),
        files=files,
        written=today(),
        attacked=attacked,
    )


def _attacked(
    told: Told,
    released: Release | EventLog,
    original: EventLog | Variants,
    owner: OwnerSide,
    control: EventLog | Variants | None,
    person: str | bool,
) -> Attacked:
    before = original if isinstance(original, Variants) else original.variants
    second: EventLog | Variants = released.variants
    if told.timed:
        second = released if isinstance(released, EventLog) else released.log
    # Whose the cases are is known of the log alone; of variants that a release is, its times tell nothing.
    tried, why = _tried(original, second, control, person)
    return Attacked(
        owner=owner,
        variants=len(before),
        events=before.events,
        attacks=attacks_shown(*tried),
        singled=tried[0],
        linked=tried[1],
        inferred=tried[2],
        why_not=why,
        disclosed=disclosed(before, released.variants) if before.events and released.variants.events else (),
    )


Tried = tuple[SinglingOut | None, Linkability | None, Inference | None]


def _tried(
    original: EventLog | Variants,
    released: EventLog | Variants,
    control: EventLog | Variants | None,
    person: str | bool,
) -> tuple[Tried, str]:
    """All attacks that can be made, and why one cannot."""
    singled, linked, inferred, why = None, None, None, ""
    try:
        singled = singling_out(original, released, control=control, person=person)
    except VeilogError as error:
        why = str(error)
    with contextlib.suppress(VeilogError):  # then that one is not told of
        linked = linkability(original, released, control=control, person=person)
    with contextlib.suppress(VeilogError):
        inferred = inference(original, released, control=control, person=person)
    return (singled, linked, inferred), why


def _attributes(released: Release | EventLog) -> tuple[str, ...]:
    """The attributes that were released."""
    if isinstance(released, EventLog):
        names = [*released.cases.column_names, *released.events.column_names]
    elif released.full is not None:
        names = [*released.full.cases.column_names, *released.full.events.column_names]
    elif released.details is not None:
        names = [*released.details.columns.cases, *released.details.columns.events]
    else:
        names = []
    return tuple(dict.fromkeys(name for name in names if name not in OF_EVERY_LOG))
