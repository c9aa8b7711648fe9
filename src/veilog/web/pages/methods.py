"""The methods as cards: what each is for, in words for people who have to choose one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from veilog.errors import VeilogError
from veilog.methods import METHODS, Method, Parameter
from veilog.methods.measured import ahead
from veilog.privacy.domain import Fact
from veilog.web.work.request import offered

__all__ = ["DEFAULT", "Card", "cards"]

DEFAULT = "evolve"
"""What ``veilog suggest`` takes from public facts alone: without a delta, it resembled the original most."""


@dataclass(frozen=True)
class Card:
    """A method in words."""

    method: Method
    title: str
    when: str
    """When to use it, and when not."""

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def takes_epsilon(self) -> bool:
        return self.method.budget != "none"

    @property
    def takes_delta(self) -> bool:
        return self.takes_epsilon and (self.method.budget != "epsilon" or self.needs_labels)

    @property
    def needs_labels(self) -> bool:
        """Whether it has to know the activities, which a delta can find privately."""
        return "activities" in self.needs({})

    def needs(self, form: Mapping[str, str]) -> frozenset[Fact]:
        """Return the public facts that it has to know, with the parameters of a form."""
        if not self.takes_epsilon or not self.method.certified:
            return frozenset()
        given = {name[2:]: value for name, value in form.items() if name.startswith("p_")}
        try:
            values = self.method.parse(given)
        except VeilogError:  # which the dry run says
            values = self.method.parse({})
        return self.method.needs(values)

    @property
    def needs_delta(self) -> bool:
        return self.method.budget == "epsilon and delta"

    @property
    def protection(self) -> str:
        """What kind of promise it makes, in two or three words."""
        if not self.method.certified:
            return "no derived guarantee"
        return "proven guarantee" if self.takes_epsilon else "groups only, not differential privacy"

    @property
    def promise(self) -> str:
        """Its guarantee in words."""
        if not self.method.certified or not self.takes_epsilon:
            return self.method.guarantee[:1].upper() + self.method.guarantee[1:] + "."
        failing = ", but for a small chance δ to fail" if self.needs_delta else ""
        return f"Proven: noise hides every single case, as well as the budget ε says{failing}."

    @property
    def released(self) -> str:
        if self.method.full_log or self.method.releases == "log":
            return "a whole log, with times"
        return "the order of activities of each case"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return offered(self.method)


_WORDS: Mapping[str, tuple[str, str]] = {
    "evolve": (
        "Made-up cases that resemble the real ones",
        f"The best first choice. It resembled the original most in {ahead('evolve')} measured settings, and can add "
        "times and attributes. Single rare paths are lost, and many of its variants never happened.",
    ),
    "travas": (
        "The frequent variants, with noisy counts",
        "Take it where few variants hold nearly all cases: every variant that it releases is real. Everything rare is "
        "left out, and it needs a delta.",
    ),
    "pripel": (
        "A whole log, with times and attributes",
        "Take it to release times and attributes at once. evolve with times is the simpler way to a log with times.",
    ),
    "laplace": (
        "A tree of noisy beginnings",
        f"The best known older method, to compare with. Measured, it was behind evolve in {ahead('laplace')} settings.",
    ),
    "sacofa": (
        "The tree, steered by rules of the process",
        "To compare with, or where rules of the process are known and must be kept (those from a file are for the "
        "command line).",
    ),
    "df-laplace": (
        "Noisy counts of what follows what",
        "A baseline to compare with: only the steps matter, and paths are played out from them.",
    ),
    "sapa": (
        "Noisy steps, chosen by their distance",
        "A variant of df-laplace that keeps activities together which are near each other. To compare with.",
    ),
    "utravas": (
        "As travas, in several rounds",
        "Several noisy selections put together. Take travas first; this one is here to compare with.",
    ),
    "travag": (
        "A trained model that cases are drawn from",
        "Trains for minutes. Take it where any number of cases shall be drawn later; for one release evolve or travas "
        "are simpler. It needs a delta.",
    ),
    "libra": (
        "A whole log from random parts of it",
        "Asks a random part of the cases, which costs less for each. A whole log with times.",
    ),
    "amun": (
        "The log itself, with cases copied and times blurred",
        "Only as its paper has it. It bounds one kind of guess in the paper's own model; it shows real paths as they "
        "are.",
    ),
    "tlkc": (
        "The log itself, with risky events left out",
        "Whoever knows a few events finds a group, not a person. It says nothing against those who know more, and it "
        "adds up with no other release.",
    ),
    "pretsa": (
        "The log itself, with rare paths merged",
        "Every path is shared by a group of cases. It says nothing against those who know more, and it adds up with no "
        "other release.",
    ),
}


def cards() -> tuple[Card, ...]:
    """A card for every method, in the order in which they are worth a look."""
    order = {name: place for place, name in enumerate(_WORDS)}
    methods = sorted(METHODS.values(), key=lambda m: (order.get(m.name, len(order)), m.name))
    return tuple(Card(method, *_WORDS.get(method.name, _in_general(method))) for method in methods)


def _in_general(method: Method) -> tuple[str, str]:
    """Words for a method that these pages know nothing about: its own."""
    return f"Described in {method.paper}", f"{method.guarantee[:1].upper()}{method.guarantee[1:]}."
