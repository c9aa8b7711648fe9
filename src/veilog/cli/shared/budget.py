"""The options of ``veilog release`` and ``veilog train`` for what may be spent, on whom, and what is public."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.text import Text

from veilog.cli.shared.common import OPTIONS, Output
from veilog.cli.shared.details import activity_names
from veilog.cli.shared.values import WHOLE
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain, Fact, Values
from veilog.privacy.unit import Unit


@Parameter(name="*")
@dataclass(frozen=True)
class Persons:
    """Who is protected."""

    unit: Annotated[
        str,
        Parameter(
            help="Who is protected: case; the column that names a person; or person, see --max-cases.",
            show_default=True,
        ),
    ] = "case"
    max_cases: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Cases of a person that count, drawn at random; with --unit person: that nobody exceeds."),
    ] = None
    unnamed: Annotated[
        Literal["left-out", "own"] | None,
        Parameter(
            help="Cases without a value in the column of --unit: left-out, or own: each as of a person without other "
            "cases, which the guarantee then takes for granted. [default: left-out]"
        ),
    ] = None

    @property
    def by_column(self) -> bool:
        """Whether a column names the person, so that variants alone are not enough."""
        return self.unit not in ("case", "person")

    def checked(self) -> Unit:
        """Whom that is; refused before a log is read, where it means nothing."""
        return Unit.of(self.unit, self.max_cases, self.unnamed)

    def whom(self) -> dict[str, Any]:
        """As :func:`veilog.release` and :func:`veilog.suggest` take it."""
        return {"unit": self.unit, "max_cases": self.max_cases, "unnamed": self.unnamed}


EACH_CASE = Persons()


@Parameter(name="*", group=OPTIONS["The budget, the public facts, and whom to protect"])
@dataclass(frozen=True)
class BudgetOptions(Persons):
    """What may be spent, who is protected, and which facts are public."""

    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="Privacy budget; smaller is more private, 0.1 to 1 are usual."),
    ] = None
    guessing_advantage: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Instead of epsilon: the most by which a chance to guess who is in the log may rise, e.g. 0.2.",
        ),
    ] = None
    delta: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="What chances may exceed the factor exp(epsilon) by; well below one over the cases.",
            show_default=True,
        ),
    ] = "0"
    as_published: Annotated[
        bool, Parameter(negative="", help="The paper's own calibration, for comparison; see what is derived.")
    ] = False
    seed: Annotated[
        int | None, WHOLE, Parameter(help="Make a run repeatable, for experiments: voids the guarantee.")
    ] = None
    activities: Annotated[
        str | None,
        Parameter(
            help="The public activities: a,b,c or @FILE with one on each line; log: all labels of the log may be "
            "known; privately: find those that enough cases have, with a delta."
        ),
    ] = None
    max_length: Annotated[
        str | None, Parameter(help="The public bound on the length of a trace; log: that of the longest may be known.")
    ] = None
    allow_no_protection: Annotated[
        bool, Parameter(negative="", help="Allow a protection level of none in practice, as of any epsilon above 3.89.")
    ] = False

    def domain(self, attributes: Mapping[str, Values] | None = None) -> Domain:
        """The declared public facts."""
        text = self.activities
        activities = text if text is None or text in (FROM_LOG, PRIVATELY) else activity_names(text)
        return replace(Domain.of(activities, _length(self.max_length)), attributes=dict(attributes or {}))

    def arguments(self) -> dict[str, Any]:
        """As :func:`veilog.release` and :func:`veilog.train` take them, but for the domain and the advantage."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "as_published": self.as_published,
            "seed": self.seed,
            **self.whom(),
            "allow_no_protection": self.allow_no_protection,
        }


UNDECIDED = BudgetOptions()


def _length(text: str | None) -> int | Literal["log"] | None:
    if text is None:
        return None
    if text == FROM_LOG:
        return FROM_LOG
    try:
        return int(text)
    except ValueError:
        raise ParameterError(
            f"--max-length takes a whole number, or log, not {text!r}.", parameter="max_length"
        ) from None


def at_a_terminal() -> bool:
    """Return whether somebody is there to answer a question."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def agreed(out: Output, domain: Domain, needed: Iterable[Fact], log: EventLog | StoredLog | Variants) -> Domain:
    """Return the domain with what the owner says is public, shown what the log holds; nothing has been asked of it."""
    variants = log if isinstance(log, Variants) else log.variants
    lacking = domain.lacks(needed)
    if "activities" in lacking:
        out.show(Text("Everybody who gets the release may learn that these activities exist:", style="bold"))
        out.show(Text("  " + ", ".join(variants.labels)))
    if "max_length" in lacking:
        longest = int(variants.lengths.max(initial=0))
        out.show(Text(f"Everybody who gets the release may learn that the longest case has {longest} events."))
    if not lacking:
        return domain
    answer = out.console.input(Text("Is all of that public? Only if it would be so without any single case [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        return domain  # the release refuses, and says what else can be done
    return domain.taken_from_log(lacking)
