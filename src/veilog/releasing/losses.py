"""Losses: events, activities and cases that a release leaves out of its log, as coded values. They are computed from
the raw log, so they are confidential: for its owner alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from veilog._language import share_in_percent
from veilog._plain import InJson, ToJson
from veilog.logs.variants import Variants
from veilog.messages import OwnerMessage
from veilog.privacy.domain import Domain

LossCode = Literal[
    "declared-activities-absent",
    "activities-undeclared",
    "events-undeclared",
    "events-beyond-length",
    "cases-not-counted",
    "rows-not-read",
    "activities-not-released",
    "cases-not-released",
    "events-not-released",
    "variants-in-prior",
]

NOTABLE = 0.05
"""The share of events, activities or cases from which on a loss is stated; an absent declared activity always is."""
_NAMED = 5


@dataclass(frozen=True)
class Loss(ToJson):
    """So many of so many events, activities or cases that a release leaves out; or declared activities that no case
    has."""

    code: LossCode
    lost: int
    of: int
    names: Annotated[tuple[tuple[str, str], ...], InJson(as_=dict, left_out="at its default")] = ()
    """Declared activities that the log does not have. Each is beside the activity of the log that differs from it in
    case, spaces or accents alone, or beside an empty text."""

    @property
    def notable(self) -> bool:
        """Whether it is stated."""
        return bool(self.names) or self.lost > NOTABLE * self.of

    @property
    def message(self) -> OwnerMessage:
        """The loss in words, in the language that is spoken."""
        named = [
            str(OwnerMessage("name-in-log", name=repr(name), near=repr(near))) if near else repr(name)
            for name, near in self.names[:_NAMED]
        ]
        return OwnerMessage(
            f"lost-{self.code}",
            share=share_in_percent(self.lost / self.of),
            lost=self.lost,
            of=self.of,
            names=", ".join(named) + (" …" if len(self.names) > _NAMED else ""),
        )


def same_name(name: str) -> str:
    """Return a name without case, spaces and accents, by which two spellings of it are the same."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter) and not letter.isspace())


def events_of(variants: Variants) -> dict[str, int]:
    """Return the events of each activity."""
    events = np.zeros(len(variants.labels), dtype=np.int64)
    np.add.at(events, variants.codes, np.repeat(variants.counts, variants.lengths))
    return dict(zip(variants.labels, events.tolist(), strict=True))


def losses_by_list(events: Mapping[str, int], declared: Domain) -> tuple[Loss, ...]:
    """Return the losses that follow from a list of activities, by the events of each activity of the log."""
    if declared.alphabet is None or not events:
        return ()
    absent = [name for name in declared.alphabet if name not in events]
    spelled = {same_name(label): label for label in events}
    named = tuple((name, spelled.get(same_name(name), "")) for name in absent)
    missing = set(events) - set(declared.alphabet)
    found = (
        Loss("declared-activities-absent", len(absent), len(declared.alphabet), named),
        Loss("activities-undeclared", len(missing), len(events)),
        Loss("events-undeclared", sum(events[name] for name in missing), sum(events.values())),
    )
    return tuple(loss for loss in found if loss.notable)
