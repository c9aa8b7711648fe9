"""The methods as cards: what each is for, in words for people who have to choose one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from veilog._language import gettext
from veilog.errors import VeilogError
from veilog.methods import METHODS, Method, Parameter
from veilog.methods.method import DeltaOptional, Epsilon, OfVariants
from veilog.privacy.domain import Fact
from veilog.report.stated import stated
from veilog.web.work.request import offered

DEFAULT = "evolve"
"""What ``veilog suggest`` takes from public facts alone: without a delta, it resembled the original most."""


@dataclass(frozen=True)
class Card:
    """A method in words."""

    method: Method

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def title(self) -> str:
        return self.method.title

    @property
    def when(self) -> str:
        """When to use it, and when not; and whose it is, where it is none of ours."""
        package = self.method.package
        if not package:
            return stated(self.method.advice)
        return f"{stated(self.method.advice)} {gettext('(An add-on: {package}.)', package=package)}"

    @property
    def takes_epsilon(self) -> bool:
        return self.method.takes_epsilon

    @property
    def takes_delta(self) -> bool:
        return self.takes_epsilon and (not isinstance(self.method.budget, Epsilon) or self.needs_labels)

    @property
    def delta_buys(self) -> str:
        """What becomes of a delta that it need not have."""
        return self.method.budget.buys if isinstance(self.method.budget, DeltaOptional) else ""

    @property
    def takes_times(self) -> bool:
        """Whether times and attributes can be added to what it releases."""
        return isinstance(self.method.releases, OfVariants)

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
        return self.method.needs_delta

    @property
    def protection(self) -> str:
        """What kind of promise it makes, in two or three words."""
        if not self.method.certified:
            return gettext("no derived guarantee")
        return gettext("proven guarantee") if self.proven else gettext("groups only, not differential privacy")

    @property
    def proven(self) -> bool:
        """Whether its promise is differential privacy, and derived."""
        return self.method.certified and self.takes_epsilon

    @property
    def promise(self) -> str:
        """Its guarantee in words."""
        if not self.proven:
            said = gettext(self.method.guarantee)
            return said[:1].upper() + said[1:] + "."
        if self.needs_delta:
            return gettext(
                "Proven: noise hides every single case, as well as the budget ε says, but for a small chance δ to fail."
            )
        return gettext("Proven: noise hides every single case, as well as the budget ε says.")

    @property
    def released(self) -> str:
        if self.method.full_log:
            return gettext("a whole log, with times")
        return gettext("the order of activities of each case")

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return offered(self.method)


def cards() -> tuple[Card, ...]:
    """Return a card for every method, in the order in which they are worth a look."""
    return tuple(Card(method) for method in METHODS.values())
