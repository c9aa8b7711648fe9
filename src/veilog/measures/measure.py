"""A measure: what it compares, what its numbers are called and mean, which of them are better, and how they are found.

>>> def _fewer(pair: Pair) -> float:
...     original, released = pair.variants
...     return len(released) / max(1, len(original))
>>> Measure("variant_ratio", _fewer, (Quantity("variant ratio", "released / original", "nearer", best=1.0),)).name
'variant_ratio'

A package adds one by an entry point of the group ``veilog.measures``; ``veilog.testing.check_measure`` says whether it
keeps the contract.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from veilog._plain import tables_of
from veilog._plugins import Registry
from veilog.errors import ParameterError, VeilogError
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage

if TYPE_CHECKING:
    from veilog.logs.eventlog import EventLog

Log: TypeAlias = "EventLog | Variants"
Progress = Callable[[str, float | None], None]
"""Called with what is being done and how much of it is done (0 to 1, None where unknown)."""
Better = Literal["higher", "lower", "nearer"]
"""Which value of a quantity keeps more of the original; ``nearer``: the nearer to that of two equal logs."""
Needs = Literal["variants", "whole logs"]
Extra = Literal["", "models", "anomalies"]
"""The optional part of veilog without which a measure has no value; such a measure is taken when it is asked for."""
Form = Literal["number", "share", "hours"]
Miner = Literal["veilog", "pm4py"]
"""Who discovers process models and replays logs on them."""

Reason: TypeAlias = Message | OwnerMessage | VeilogError
"""Why there is no value: a code with its values, which are a sentence where they are shown."""

T = TypeVar("T")


@dataclass(frozen=True)
class Quantity:
    """One number of a measure, and its words: what it is called, what it means, and how it is printed."""

    title: str
    meaning: str
    """May hold attributes of the measure's value: ``{0.cases:,}``."""
    better: Better
    best: float | None = None
    """Its value for two equal logs; None where that depends on the log."""
    low: float = 0.0
    high: float = math.inf
    of: str = ""
    """The attribute of the measure's value that it is; the value itself if empty."""
    form: Form = "number"
    unit: str = ""
    plain: tuple[str, str] | None = None
    """Title and meaning for readers of pages; those that have none are not on the pages of our own measures."""

    def number(self, value: Any) -> float | int | None:
        """Return the number that a measure's value has of it."""
        number: float | int | None = getattr(value, self.of) if self.of and value is not None else value
        return number

    def says(self, value: Any) -> str:
        """Return what it means, for this value of the measure."""
        return self.meaning.format(value) if self.of and value is not None else self.meaning


@dataclass(frozen=True)
class Found:
    """What a measure found: a value, or None and the reason; between which numbers it lies where it is only bounded."""

    value: Any
    interval: tuple[float, float] | None = None
    reason: Reason | str | None = None
    """Another package's may be a sentence."""

    @classmethod
    def bounded(cls, low: float, high: float, *, certain: bool = True) -> Found:
        """Of a measure that would take too long to find: the value lies between these, for ``certain`` or but for a
        chance of one in a million that it is above."""
        code = "measure-bounded" if certain else "measure-bounded-by-sample"
        return cls(None, (low, high), Message(code, low=f"{low:.4f}", high=f"{high:.4f}"))

    @property
    def why(self) -> Reason:
        """The reason, a sentence as a message."""
        return Message(self.reason or "") if isinstance(self.reason, str | None) else self.reason


@dataclass(frozen=True, eq=False)
class Pair:
    """An original and its release, for measures; what several of them need is computed once."""

    original: EventLog | Variants
    released: EventLog | Variants
    progress: Progress = field(default=lambda text, fraction: None)
    seconds: float = 300.0
    """How long discovery and replay of models may take."""
    memory: int = 4 << 30
    """How many bytes a process beside this one may take."""
    miner: Miner = "veilog"
    control: EventLog | Variants | None = None
    """People of the same process who were not in the log that was released; None where nobody was held out."""
    second: EventLog | Variants | None = None
    """Another release of the same log."""
    person: str | bool = True
    """Whose the cases of the original are: told by this column, by the one that seems to (True), or not (False)."""
    exact: bool = True
    """Whether the similarity of many variants is to be found exactly, which may take minutes; else it is bounded."""
    _known: dict[Callable[[Pair], Any], Any] = field(default_factory=dict, repr=False)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    @property
    def variants(self) -> tuple[Variants, Variants]:
        """The variants of both; every log has them."""
        first, second = (log if isinstance(log, Variants) else log.variants for log in (self.original, self.released))
        return first, second

    @property
    def whole(self) -> tuple[EventLog, EventLog]:
        """Both logs with their events; :class:`ParameterError` where only the variants were given."""
        for log, name in ((self.original, "original"), (self.released, "released")):
            if isinstance(log, Variants):
                raise ParameterError("measure-of-variants-only", parameter=name, name=name)
        assert not isinstance(self.original, Variants)
        assert not isinstance(self.released, Variants)
        return self.original, self.released

    def once(self, find: Callable[[Pair], T]) -> T:
        """Return what this function finds of the logs, computed when it is first asked for; so are its errors."""
        if find not in self._known:
            try:
                self._known[find] = find(self)
            except VeilogError as error:
                self._known[find] = error
        known = self._known[find]
        if isinstance(known, VeilogError):
            raise known
        return known  # type: ignore[no-any-return]

    def enter(self, context: contextlib.AbstractContextManager[T]) -> T:
        """Enter something that is left when all measures have been taken."""
        return self._open.enter_context(context)

    @contextlib.contextmanager
    def closing(self) -> Iterator[Pair]:
        """Leave at the end what was entered."""
        with self._open:
            yield self


@dataclass(frozen=True)
class Measure:
    """How a release is compared with its original: a name, its numbers in words, and the function that finds them."""

    name: str
    """In JSON, in the columns of experiments and in the docs."""
    find: Callable[[Pair], Any]
    """Returns a number, a value that has the numbers as attributes, or a :class:`Found`; a :class:`VeilogError` is the
    reason why there is none."""
    quantities: tuple[Quantity, ...]
    needs: Needs = "variants"
    extra: Extra = ""
    symmetric: bool = False
    """Whether it is the same when original and release change places."""
    doing: str = ""
    """What progress says while it is found."""
    begin: Callable[[Pair], object] | None = None
    """Called before any measure is found, for what goes on beside the others."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ParameterError("measure-name-invalid", parameter="name", name=self.name)
        if self.needs not in get_args(Needs) or self.extra not in get_args(Extra):
            raise ParameterError("measure-need-unknown", parameter="needs", name=self.name)
        for quantity in self.quantities:
            if quantity.better not in get_args(Better) or quantity.form not in get_args(Form):
                raise ParameterError("measure-direction-missing", parameter="better", title=quantity.title)

    def found(self, pair: Pair) -> Found:
        """Return the value for these logs, or why there is none."""
        if self.doing:
            pair.progress(self.doing, None)
        try:
            value = self.find(pair)
        except VeilogError as error:
            return Found(None, reason=error.with_traceback(None))
        return value if isinstance(value, Found) else Found(value)

    def found_by(self, distribution: str, pair: Pair) -> Found:
        """Return the value of a measure that another distribution adds: whatever it does costs its own value only."""
        try:
            found = self.found(pair)
            if found.value is None:
                return replace(found, reason=found.reason or Message("measure-without-reason"))
            self.numbers(found.value)
            for quantity in self.quantities:
                quantity.says(found.value)
            return found
        except Exception as error:  # noqa: BLE001 - not our code
            why = f"{type(error).__name__}: {error}"
            warnings.warn(f"The measure {self.name!r} of {distribution} failed: {why}", stacklevel=2)
            return Found(None, reason=Message("measure-failed", why=why))

    def numbers(self, value: Any) -> dict[str, float | int | None]:
        """Return the numbers of a value by their attributes (``value`` where it is one itself), as plain numbers."""
        return {quantity.of or "value": _plain(quantity.number(value)) for quantity in self.quantities}


@cache
def our_measures() -> dict[str, Any]:
    """Return by name where each of our own measures is, and its facts and words."""
    return tables_of(__package__, "measures")


def our_measure(name: str, find: Callable[[Pair], Any], begin: Callable[[Pair], object] | None = None) -> Measure:
    """Return the measure of this name with the facts and the words that ``measures.toml`` has of it."""
    facts = {fact: value for fact, value in our_measures()[name].items() if fact != "at"}
    facts["quantities"] = tuple(Quantity(**number) for number in facts.get("quantities", ()))
    return Measure(name, find, begin=begin, **facts)


def _plain(number: Any) -> float | int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, numbers.Real) or not math.isfinite(number):
        raise ParameterError("measure-value-not-finite", number=number)
    return int(number) if isinstance(number, numbers.Integral) else float(number)


# Every measure by its name -------------------------------------------------------------------------------------------

# Every measure by its name: our own, each imported when it is asked for, and those that other packages add.


MEASURES = Registry(Measure, "veilog.measures", {name: facts["at"] for name, facts in our_measures().items()})
"""In the order in which they are taken, and in which the reasons of those without a value stand."""
