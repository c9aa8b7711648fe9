"""Method: a function of the curator, with the facts that people choose by."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from veilog._plain import tables_of
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.benchmark_facts import ahead_in, measured
from veilog.methods.settings import Parameter, Settings
from veilog.privacy.account.guarantee import up
from veilog.privacy.domain import Fact
from veilog.rules.rules import ReleaseRules

Progress = Callable[[str, float | None], None]
"""Function that receives a text about progress and the finished share (0 to 1, None if unknown)."""

Score = Callable[[Variants, Variants], float]
"""Similarity of a release (second) to a log (first); only as-published methods that peek use one."""


LARGEST_ADVISED = 2.0
"""Largest epsilon with about moderate protection; beyond it a release is not worth its risk."""
NONE_ADVISED = Message("no-epsilon-advised")


_times: ContextVar[Fraction] = ContextVar("times", default=Fraction(1))


@contextlib.contextmanager
def with_a_share(times: Fraction) -> Iterator[None]:
    """Run a block with a share of epsilon, for its advice on epsilons.

    The whole epsilon is ``times`` as much. A person with several cases, or labels, times and attributes have the rest.
    """
    token = _times.set(_times.get() * times)
    try:
        yield
    finally:
        _times.reset(token)


def as_asked(epsilon: Fraction | float) -> float:
    """Return the epsilon to request so that a block with a share of it has this one."""
    return float(epsilon) * float(_times.get())


def advised(needed: float, code: str = "epsilon-would-do") -> Message:
    """Return advice on the epsilon to ask for, rounded up, but never a weak one."""
    needed = as_asked(needed)
    return NONE_ADVISED if needed > LARGEST_ADVISED else Message(code, epsilon=up(needed, 2))


def advised_once(remarks: Iterable[Message]) -> Iterator[Message]:
    """Yield the remarks of one release, with the advice against any epsilon only once."""
    said = False
    for remark in remarks:
        once = {name: "" if said and value == NONE_ADVISED else value for name, value in remark.values.items()}
        yield Message(remark.code, **once)
        said = said or NONE_ADVISED in remark.values.values()


@dataclass(frozen=True)
class Request:
    """User's request of any method; budgets are exact, 0 where a method takes none."""

    epsilon: Fraction
    delta: Fraction
    as_published: bool
    progress: Progress
    score: Score
    remark: Callable[[str | Message], None] = lambda remark: None
    """Function for remarks to the reader of the release, from public facts and noisy answers only."""
    prior: Variants | None = None
    """Public knowledge about the process: traces of other cases, or of a model."""
    prior_of_model: bool = False
    """True if the prior is of models alone, so that the frequency of its traces means nothing."""
    rules: ReleaseRules | None = None
    """Rules that every released case obeys.
    A method that draws cases draws, as far as it can, none that breaks them. The rest is repaired after it."""
    beside: Callable[[str, Variants], None] = lambda name, variants: None
    """Function for a named further release of the same answers; see :attr:`Method.beside`."""

    def obeying(self, real: Variants) -> Variants:
        """Return the real variants that obey the rules; repaired ones would not be real."""
        return real if self.rules is None else self.rules.only(real)


@dataclass(frozen=True)
class Epsilon:
    """The budget is an epsilon."""

    def __str__(self) -> str:
        return "epsilon"


@dataclass(frozen=True)
class EpsilonAndDelta:
    """The budget is an epsilon and a delta above 0."""

    fixed: bool = False
    """True if its settings fix all its queries.
    Then the delta of its answers is no secret. The guarantee has that delta, not the larger one asked for."""

    def __str__(self) -> str:
        return "epsilon and delta"


@dataclass(frozen=True)
class DeltaOptional:
    """The budget is an epsilon, and a delta where these settings have a use for one."""

    of_use: Callable[[Any], bool]
    buys: str
    """Effect of a delta: "With one, ..."."""

    def __str__(self) -> str:
        return "epsilon, delta optional"


@dataclass(frozen=True)
class NoEpsilon:
    """No epsilon: its guarantee, if any, is another one than differential privacy."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True)
class OfVariants:
    """Release of variants, by queries about variants; times and attributes can follow."""

    def __str__(self) -> str:
        return "variants"


@dataclass(frozen=True)
class WholeLog:
    """The method asks about events, with times and attributes, and releases a log."""

    def __str__(self) -> str:
        return "log"


@dataclass(frozen=True)
class Groups:
    """Release of a log with every case in a group, whose stated guarantee is checked."""

    check: Callable[[EventLog, Any], None]
    """Independent check, before anything is written, that raises a ``VeilogError`` for a false statement."""

    def __str__(self) -> str:
        return "log"


@dataclass(frozen=True)
class Method:
    """Method, published or ours, in both modes, with the facts that people choose by."""

    name: str
    title: str
    """Content of its release, in a line."""
    advice: str | Message
    """Advice on when to take it, and when not."""
    paper: str
    guarantee: str
    """Certified guarantee, in words."""
    as_published: str
    """Derived guarantee of the as-published release, in words."""
    run: Callable[[Any, Request, Any], Variants | EventLog]
    """``run(curator, request, settings)``."""
    budget: Epsilon | EpsilonAndDelta | DeltaOptional | NoEpsilon
    releases: OfVariants | WholeLog | Groups = OfVariants()
    settings: type[Settings] = Settings
    needs: Callable[[Any], frozenset[Fact]] = lambda settings: frozenset()
    """Public facts that it needs with these settings, declared or public by the data owner's word.
    Without them it is refused before anything is asked."""
    beside: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    """Names of further releases that it makes of the same answers with these settings."""
    certified: bool = True
    """True if there is a certified release; otherwise --as-published is required."""
    weighed: str = ""
    """Text of ``veilog suggest`` about it; empty where it is not considered."""
    takes_prior: bool = False
    """True if it can start from public knowledge about the process."""
    draws: bool = False
    """True if it draws any number of cases from a model; the number reveals nothing of the log."""
    package: str = ""
    """The package that brings it, where that is another than this one."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The settings in words."""
        return self.settings.parameters()

    @property
    def takes_epsilon(self) -> bool:
        """True if its guarantee is differential privacy."""
        return not isinstance(self.budget, NoEpsilon)

    @property
    def needs_delta(self) -> bool:
        """True if it cannot use a delta of 0."""
        return isinstance(self.budget, EpsilonAndDelta)

    @property
    def full_log(self) -> bool:
        """True if it needs the events with times and attributes, not only the variants."""
        return not isinstance(self.releases, OfVariants)

    def parse(self, values: Mapping[str, Any], beside: Iterable[str] = ()) -> Settings:
        """Return its settings with these values read and checked, and defaults else.

        ``beside`` has other names that are valid in the same place, one of which may have been meant.
        """
        return self.settings.parse(values, of=self.name, beside=beside)

    def spends_delta(self, settings: Settings) -> bool:
        """Return whether the release can cost delta with these settings."""
        if isinstance(self.budget, DeltaOptional):
            return self.budget.of_use(settings)
        return self.needs_delta

    def to_json(self) -> dict[str, object]:
        """Return the facts of ``veilog methods --json`` about it."""
        return {
            "name": self.name,
            **({"package": self.package} if self.package else {}),
            "paper": self.paper,
            "releases": str(self.releases),
            "budget": str(self.budget),
            "guarantee": self.guarantee,
            "as_published": self.as_published,
            "parameters": [
                {"name": p.name, "kind": p.kind.__name__, "default": p.default, "what": p.what} for p in self.parameters
            ],
        }


@cache
def our_methods() -> dict[str, Any]:
    """Return by name where each of our own methods is, and its words."""
    return tables_of(__package__, "methods")


def our_method(
    name: str,
    run: Callable[[Any, Request, Any], Variants | EventLog],
    settings: type[Settings] = Settings,
    budget: Epsilon | EpsilonAndDelta | DeltaOptional | NoEpsilon = Epsilon(),
    **more: Any,
) -> Method:
    """Return the method of this name, with the words of ``methods.toml`` about it.

    Its budget is an epsilon, unless it is given.
    """
    words = {word: said for word, said in our_methods()[name].items() if word != "at"}
    found = measured()
    cells = ahead_in(name) if name in found.similarity else ""
    weighed = words.get("weighed", "").format(cells=cells, logs=len(found.logs), epsilons=len(found.epsilons))
    return Method(name, run=run, settings=settings, budget=budget, **{**words, "weighed": weighed}, **more)
