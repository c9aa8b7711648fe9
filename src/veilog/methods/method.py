"""What a method is: a function of the curator and a request, and the facts about it that people choose by."""

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
"""Called with what is being done and how much of it is done (0 to 1, None where unknown)."""

Score = Callable[[Variants, Variants], float]
"""How well a release (second) resembles a log (first); only as-published methods that peek use one."""


LARGEST_ADVISED = 2.0
"""Protection is moderate up to about this epsilon; beyond it a release is not worth its risk."""
NONE_ADVISED = Message("no-epsilon-advised")


_times: ContextVar[Fraction] = ContextVar("times", default=Fraction(1))


@contextlib.contextmanager
def with_a_share(times: Fraction) -> Iterator[None]:
    """What is done here has a share of the epsilon that there was, which is so many times as much: that is for a person
    with several cases, or labels, times and attributes have the rest."""
    token = _times.set(_times.get() * times)
    try:
        yield
    finally:
        _times.reset(token)


def as_asked(epsilon: Fraction | float) -> float:
    """Return the epsilon that one has to ask for so that what is done here has this."""
    return float(epsilon) * float(_times.get())


def advised(needed: float, code: str = "epsilon-would-do") -> Message:
    """Advice that names the epsilon that would have to be asked for, rounded up; none is ever advised that protects
    little."""
    needed = as_asked(needed)
    return NONE_ADVISED if needed > LARGEST_ADVISED else Message(code, epsilon=up(needed, 2))


def advised_once(remarks: Iterable[Message]) -> Iterator[Message]:
    """The remarks of one release, of which only the first says that no epsilon would do."""
    said = False
    for remark in remarks:
        once = {name: "" if said and value == NONE_ADVISED else value for name, value in remark.values.items()}
        yield Message(remark.code, **once)
        said = said or NONE_ADVISED in remark.values.values()


@dataclass(frozen=True)
class Request:
    """What the user asked of any method. Budgets are exact; 0 where a method takes none."""

    epsilon: Fraction
    delta: Fraction
    as_published: bool
    progress: Progress
    score: Score
    remark: Callable[[str | Message], None] = lambda remark: None
    """Called with what the reader of the release should know; from public facts and noisy answers only."""
    prior: Variants | None = None
    """What is public about the process: traces of other cases, or of a model."""
    prior_of_model: bool = False
    """Whether the prior is of models alone, so that how frequent its traces are means nothing."""
    rules: ReleaseRules | None = None
    """What every released case obeys: a method that draws cases draws none that breaks them, as far as it can; the rest
    is repaired after it."""
    beside: Callable[[str, Variants], None] = lambda name, variants: None
    """Called with a further release that was made of the same answers, under its name; see :attr:`Method.beside`."""

    def obeying(self, real: Variants) -> Variants:
        """Return the real variants that obey the rules: one that was repaired would not be real."""
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
    """Whether all that it asks is fixed by its settings: then the delta that its answers have is no secret, and its
    guarantee is that delta and not the larger one that was asked for."""

    def __str__(self) -> str:
        return "epsilon and delta"


@dataclass(frozen=True)
class DeltaOptional:
    """The budget is an epsilon, and a delta where these settings have a use for one."""

    of_use: Callable[[Any], bool]
    buys: str
    """What becomes of one: "With one, ..."."""

    def __str__(self) -> str:
        return "epsilon, delta optional"


@dataclass(frozen=True)
class NoEpsilon:
    """The method has no epsilon: its guarantee, if any, is another one than differential privacy."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True)
class OfVariants:
    """The method asks about variants and releases variants; times and attributes can be added to them."""

    def __str__(self) -> str:
        return "variants"


@dataclass(frozen=True)
class WholeLog:
    """The method asks about events, with times and attributes, and releases a log."""

    def __str__(self) -> str:
        return "log"


@dataclass(frozen=True)
class Groups:
    """The method releases a log in which everybody is one of a group. It says what it states; that is checked."""

    check: Callable[[EventLog, Any], None]
    """Refuses (by raising a ``VeilogError``) a release that does not hold what the method states; run before anything
    is written, and written independently of the method."""

    def __str__(self) -> str:
        return "log"


@dataclass(frozen=True)
class Method:
    """One published method (or one of ours), in both faces, with the facts that people choose by."""

    name: str
    title: str
    """What it makes, in a line."""
    advice: str | Message
    """When to take it, and when not."""
    paper: str
    guarantee: str
    """What the certified release is, in words."""
    as_published: str
    """What the as-published release derives, in words."""
    run: Callable[[Any, Request, Any], Variants | EventLog]
    """``run(curator, request, settings)``."""
    budget: Epsilon | EpsilonAndDelta | DeltaOptional | NoEpsilon
    releases: OfVariants | WholeLog | Groups = OfVariants()
    settings: type[Settings] = Settings
    needs: Callable[[Any], frozenset[Fact]] = lambda settings: frozenset()
    """The public facts about the process that it takes for granted with these settings: declared, or the log's by the
    owner's word. Refused without, before anything is asked."""
    beside: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    """The names of further releases that it makes with these settings of the same answers, so for nothing more."""
    certified: bool = True
    """Whether there is a certified release at all; where not, --as-published must be asked for."""
    weighed: str = ""
    """What ``veilog suggest`` says of it; nothing where it is not considered."""
    takes_prior: bool = False
    """Whether it can start from what is public about the process."""
    draws: bool = False
    """Whether its cases are drawn from a model, as many as are wanted: their number says nothing of the log."""
    package: str = ""
    """The package that brings it, where that is another than this one."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The settings in words."""
        return self.settings.parameters()

    @property
    def takes_epsilon(self) -> bool:
        """Whether its guarantee is differential privacy."""
        return not isinstance(self.budget, NoEpsilon)

    @property
    def needs_delta(self) -> bool:
        """Whether it has no use for a delta of 0."""
        return isinstance(self.budget, EpsilonAndDelta)

    @property
    def full_log(self) -> bool:
        """Whether it needs the events themselves, with times and attributes, and not only the variants."""
        return not isinstance(self.releases, OfVariants)

    def parse(self, values: Mapping[str, Any], beside: Iterable[str] = ()) -> Settings:
        """Return its settings with the given values read and checked, and defaults for the rest; ``beside`` them other
        names can be said, one of which may have been meant."""
        return self.settings.parse(values, of=self.name, beside=beside)

    def spends_delta(self, settings: Settings) -> bool:
        """Return whether the release can cost delta with these settings."""
        if isinstance(self.budget, DeltaOptional):
            return self.budget.of_use(settings)
        return self.needs_delta

    def to_json(self) -> dict[str, object]:
        """Return what ``veilog methods --json`` says of it."""
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
    """Return the method of this name, with an epsilon unless there is ``more`` to say of its budget, and with the words
    that ``methods.toml`` has of it."""
    words = {word: said for word, said in our_methods()[name].items() if word != "at"}
    found = measured()
    cells = ahead_in(name) if name in found.similarity else ""
    weighed = words.get("weighed", "").format(cells=cells, logs=len(found.logs), epsilons=len(found.epsilons))
    return Method(name, run=run, settings=settings, budget=budget, **{**words, "weighed": weighed}, **more)
