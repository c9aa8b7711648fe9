"""The options of ``veilog release`` and ``veilog train`` for what may be spent, on whom, and what is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from veilog.cli.details import declared_list
from veilog.privacy.accounting import parse_delta, parse_epsilon
from veilog.privacy.domain import Domain, Values

__all__ = ["UNDECIDED", "Budget"]


@Parameter(name="*")
@dataclass(frozen=True)
class Budget:
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
        Parameter(allow_leading_hyphen=True, help="Probability of failure that is allowed; below one over the cases."),
    ] = "0"
    as_published: Annotated[
        bool, Parameter(negative="", help="The paper's own calibration, for comparison; see what is derived.")
    ] = False
    seed: Annotated[int | None, Parameter(help="Make a run repeatable, for experiments: voids the guarantee.")] = None
    unit: Annotated[
        str,
        Parameter(help="Who is protected: case; the column that names a person; or person, see --max-cases."),
    ] = "case"
    max_cases: Annotated[
        int | None,
        Parameter(help="Cases of a person that count, drawn at random; with --unit person: that nobody exceeds."),
    ] = None
    activities: Annotated[
        str | None,
        Parameter(help="Declare the public activities: a,b,c or @FILE with one on each line."),
    ] = None
    max_length: Annotated[int | None, Parameter(help="Declare the public bound on the length of a trace.")] = None

    @property
    def by_column(self) -> bool:
        """Whether a column names the person, so that variants alone are not enough."""
        return self.unit not in ("case", "person")

    def check(self) -> None:
        """Refuse what can be refused without the log."""
        parse_delta(self.delta)
        if self.epsilon is not None:
            parse_epsilon(self.epsilon)

    def domain(self, attributes: Mapping[str, Values] | None = None) -> Domain:
        """The declared public facts."""
        activities = None if self.activities is None else declared_list(self.activities)
        return Domain(activities, self.max_length, dict(attributes or {}))

    def arguments(self) -> dict[str, Any]:
        """As :func:`veilog.release` and :func:`veilog.train` take them, but for the domain and the advantage."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "as_published": self.as_published,
            "seed": self.seed,
            "unit": self.unit,
            "max_cases": self.max_cases,
        }


UNDECIDED = Budget()
