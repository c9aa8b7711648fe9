"""The disclosure risks of a log: each against one kind and size of knowledge, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from veilog._language import gettext_noop
from veilog._notebook import bar, card, frame, paragraph, table
from veilog._plain import InJson, ToJson
from veilog.measures.disclosure.estimate import Interval

if TYPE_CHECKING:
    import pandas as pd


Background = Literal["set", "multiset", "sequence"]
BACKGROUNDS: tuple[Background, ...] = get_args(Background)
KNOWN: Mapping[str, str] = {
    "set": gettext_noop("which activities"),
    "multiset": gettext_noop("which and how often"),
    "sequence": gettext_noop("which, in their order"),
}
"""What is known of a person, for each background, in words."""
EXPLAINED: Mapping[str, str] = {
    "case disclosure": gettext_noop("how far such knowledge narrows the cases down (1 = to one)"),
    "trace disclosure": "how far it tells the whole trace",
    "unique": gettext_noop("cases that some such knowledge singles out"),
}
"""What the numbers mean, for those who look at them."""

_COLUMNS = (
    "background", "size", "candidates", "case_disclosure", "trace_disclosure", "worst_case", "unique", "cases", "exact",
)  # fmt: skip


@dataclass(frozen=True)
class Intervals:
    """95 % confidence intervals of an estimate."""

    candidates: Interval
    case_disclosure: Interval | None
    trace_disclosure: Interval | None


_IF_ANY = InJson(left_out="at its default")


@dataclass(frozen=True)
class RiskResult(ToJson):
    """Disclosure against one kind and size of background knowledge. What is None has its reason in ``reason``."""

    background: Background
    size: int
    candidates: int
    """Number of candidates; an estimate when not ``exact``."""
    case_disclosure: float | None
    trace_disclosure: float | None
    worst_case: float | None
    """1 / the fewest cases that match a candidate; a lower bound when not ``exact``."""
    worst_trace: float | None
    """The largest trace disclosure of a candidate; a lower bound when not ``exact``."""
    unique: int
    """Cases that some candidate singles out; a lower bound when not ``exact``."""
    cases: int
    """Cases of the log."""
    exact: bool
    seconds: float
    sampled: Annotated[int | None, _IF_ANY] = None
    """Candidates that an estimate rests on."""
    interval: Annotated[Intervals | None, _IF_ANY] = None
    reason: Annotated[str | None, _IF_ANY] = None
    attribute_disclosure: Annotated[float | None, _IF_ANY] = None
    """How far it tells the value of the sensitive attribute that was asked for."""


class Risks(tuple[RiskResult, ...]):
    """What :func:`veilog.risk` found: one :class:`RiskResult` for each kind and size of background knowledge."""

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each result.

        >>> import veilog
        >>> from veilog.logs.made_up.simulate import hospital
        >>> veilog.risk(hospital(50, seed=1), "set", (1, 2)).to_frame()["size"].tolist()
        [1, 2]
        """
        told = any(result.attribute_disclosure is not None for result in self)
        columns = (*_COLUMNS, "attribute_disclosure") if told else _COLUMNS
        return frame(({name: getattr(result, name) for name in columns} for result in self), columns)

    def _repr_html_(self) -> str:
        rows = [
            (r.background, r.size, r.case_disclosure, bar(r.case_disclosure or 0.0), r.unique, r.cases) for r in self
        ]
        head = ("what is known", "activities", "case disclosure", "", "singled out", "of cases")
        words = "; ".join(f"{name}: {meaning}" for name, meaning in EXPLAINED.items())
        reasons = [f"{r.background} of size {r.size}: {r.reason}" for r in self if r.reason is not None]
        rest = [paragraph(text, "s") for text in (*reasons, f"{words}. The log itself, so for its owner alone.")]
        return card("Disclosure by a few known activities", table(head, rows, numbers=(1, 2, 4, 5)), *rest)
