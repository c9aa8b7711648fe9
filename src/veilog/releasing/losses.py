"""Losses: events, activities and cases that a release leaves out, as coded values.

They are computed from the raw log, so they are confidential: only the data owner sees them.
"""

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
"""Share of events, activities or cases above which a loss is reported; absent declared activities always are."""
_NAMED = 5


@dataclass(frozen=True)
class Loss(ToJson):
    """Number of events, activities or cases that a release leaves out, of so many.

    Or number of declared activities that no case has.
    """

    code: LossCode
    lost: int
    of: int
    names: Annotated[tuple[tuple[str, str], ...], InJson(as_=dict, left_out="at its default")] = ()
    """Declared activities that the log does not have, each with its likely spelling.
    The spelling is the activity of the log that differs in case, spaces or accents alone, or an empty text."""

    @property
    def notable(self) -> bool:
        """True if the loss is reported."""
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
    """Return a name without case, spaces and accents, to compare spellings."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter) and not letter.isspace())


def events_of(variants: Variants) -> dict[str, int]:
    """Return the events of each activity."""
    events = np.zeros(len(variants.labels), dtype=np.int64)
    np.add.at(events, variants.codes, np.repeat(variants.counts, variants.lengths))
    return dict(zip(variants.labels, events.tolist(), strict=True))


def losses_by_list(events: Mapping[str, int], declared: Domain) -> tuple[Loss, ...]:
    """Return the losses due to a list of activities, from the log's event counts."""
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
