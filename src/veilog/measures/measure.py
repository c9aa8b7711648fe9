"""Measures that compare a release with its original.

A measure has a name, numbers with titles and meanings, a direction for each number and a function that finds them.

>>> def _fewer(pair: Pair) -> float:
...     original, released = pair.variants
...     return len(released) / max(1, len(original))
>>> Measure("variant_ratio", _fewer, (Quantity("variant ratio", "released / original", "nearer", best=1.0),)).name
'variant_ratio'

A package adds a measure by an entry point of the group ``veilog.measures``. ``veilog.testing.check_measure`` checks
that it keeps the contract.
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
"""Callback with the current step and the share of it that is done (0 to 1, None where unknown)."""
Better = Literal["higher", "lower", "nearer"]
"""Direction in which a quantity keeps more of the original; ``nearer``: nearer to its value for two equal logs."""
Needs = Literal["variants", "whole logs"]
Extra = Literal["", "models", "anomalies"]
"""Extra of veilog that a measure needs; such a measure is taken only on request."""
Form = Literal["number", "share", "hours"]
Miner = Literal["veilog", "pm4py"]
"""Program that discovers process models and replays logs on them."""

Reason: TypeAlias = Message | OwnerMessage | VeilogError
"""Reason for a missing value: a code with its values, a sentence where it is shown."""

T = TypeVar("T")


@dataclass(frozen=True)
class Quantity:
    """One number of a measure, with its title, its meaning and its form in print."""

    title: str
    meaning: str
    """Sentence that may hold attributes of the measure's value: ``{0.cases:,}``."""
    better: Better
    best: float | None = None
    """Value for two equal logs; None where that depends on the log."""
    low: float = 0.0
    high: float = math.inf
    of: str = ""
    """Attribute of the measure's value with the number; the value itself if empty."""
    form: Form = "number"
    unit: str = ""
    plain: tuple[str, str] | None = None
    """Title and meaning for pages, which leave out our own measures without these."""

    def number(self, value: Any) -> float | int | None:
        """Return this number of a measure's value."""
        number: float | int | None = getattr(value, self.of) if self.of and value is not None else value
        return number

    def says(self, value: Any) -> str:
        """Return the meaning of the number, for this value of the measure."""
        return self.meaning.format(value) if self.of and value is not None else self.meaning


@dataclass(frozen=True)
class Found:
    """Result of a measure: a value, bounds of it, or the reason why there is none."""

    value: Any
    interval: tuple[float, float] | None = None
    reason: Reason | str | None = None
    """Reason why there is no value; another package's may be a sentence."""

    @classmethod
    def bounded(cls, low: float, high: float, *, certain: bool = True) -> Found:
        """Return a result that is only known to lie between two bounds.

        Without ``certain`` there is a chance of one in a million that it lies above.
        """
        code = "measure-bounded" if certain else "measure-bounded-by-sample"
        return cls(None, (low, high), Message(code, low=f"{low:.4f}", high=f"{high:.4f}"))

    @property
    def why(self) -> Reason:
        """Return the reason, a sentence as a message."""
        return Message(self.reason or "") if isinstance(self.reason, str | None) else self.reason


@dataclass(frozen=True, eq=False)
class Pair:
    """An original and its release; shared intermediate results are computed once."""

    original: EventLog | Variants
    released: EventLog | Variants
    progress: Progress = field(default=lambda text, fraction: None)
    seconds: float = 300.0
    """Time limit for the discovery and replay of models."""
    memory: int = 4 << 30
    """Memory limit in bytes for another process."""
    miner: Miner = "veilog"
    control: EventLog | Variants | None = None
    """People of the same process who are not in the released log; None if there are none."""
    second: EventLog | Variants | None = None
    """Another release of the same log."""
    person: str | bool = True
    """Column that names the person of a case: this one, the likeliest one (True), or none (False)."""
    exact: bool = True
    """True finds the similarity of many variants exactly, which may take minutes; False bounds it."""
    _known: dict[Callable[[Pair], Any], Any] = field(default_factory=dict, repr=False)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    @property
    def variants(self) -> tuple[Variants, Variants]:
        """Return the variants of both logs; every log has them."""
        first, second = (log if isinstance(log, Variants) else log.variants for log in (self.original, self.released))
        return first, second

    @property
    def whole(self) -> tuple[EventLog, EventLog]:
        """Return both logs with their events.

        Raises:
            ParameterError: When only the variants were given.

        """
        for log, name in ((self.original, "original"), (self.released, "released")):
            if isinstance(log, Variants):
                raise ParameterError("measure-of-variants-only", parameter=name, name=name)
        assert not isinstance(self.original, Variants)
        assert not isinstance(self.released, Variants)
        return self.original, self.released

    def once(self, find: Callable[[Pair], T]) -> T:
        """Return the result of a function of this pair, or raise its error; run it once."""
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
        """Enter a context that ends when all measures have been taken."""
        return self._open.enter_context(context)

    @contextlib.contextmanager
    def closing(self) -> Iterator[Pair]:
        """Leave all entered contexts at the end."""
        with self._open:
            yield self


@dataclass(frozen=True)
class Measure:
    """Comparison of a release with its original: a name, numbers and a function."""

    name: str
    """Name in JSON, in the columns of experiments and in the docs."""
    find: Callable[[Pair], Any]
    """Function that returns a number, a value with the numbers as attributes, or a :class:`Found`. A
    :class:`VeilogError` is the reason why there is no value."""
    quantities: tuple[Quantity, ...]
    needs: Needs = "variants"
    extra: Extra = ""
    symmetric: bool = False
    """True if the value stays the same when original and release change places."""
    doing: str = ""
    """Text of the progress while the value is found."""
    begin: Callable[[Pair], object] | None = None
    """Function called before any measure, for work that runs during the others."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ParameterError("measure-name-invalid", parameter="name", name=self.name)
        if self.needs not in get_args(Needs) or self.extra not in get_args(Extra):
            raise ParameterError("measure-need-unknown", parameter="needs", name=self.name)
        for quantity in self.quantities:
            if quantity.better not in get_args(Better) or quantity.form not in get_args(Form):
                raise ParameterError("measure-direction-missing", parameter="better", title=quantity.title)

    def found(self, pair: Pair) -> Found:
        """Return the value for these logs, or the reason why there is none."""
        if self.doing:
            pair.progress(self.doing, None)
        try:
            value = self.find(pair)
        except VeilogError as error:
            return Found(None, reason=error.with_traceback(None))
        return value if isinstance(value, Found) else Found(value)

    def found_by(self, distribution: str, pair: Pair) -> Found:
        """Return the value of a measure of another distribution; its errors stay its own."""
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
        """Return a value's plain numbers by attribute, or by ``value`` if it is a number."""
        return {quantity.of or "value": _plain(quantity.number(value)) for quantity in self.quantities}


@cache
def our_measures() -> dict[str, Any]:
    """Return the place, the facts and the words of each of our own measures, by name."""
    return tables_of(__package__, "measures")


def our_measure(name: str, find: Callable[[Pair], Any], begin: Callable[[Pair], object] | None = None) -> Measure:
    """Return the measure of this name with its facts and words from ``measures.toml``."""
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

# Our own measures, each imported on its first use, and those of other packages.


MEASURES = Registry(Measure, "veilog.measures", {name: facts["at"] for name, facts in our_measures().items()})
"""Registry in the order in which the measures are taken and the reasons without a value are listed."""
