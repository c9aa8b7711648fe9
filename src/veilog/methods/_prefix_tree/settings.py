"""Settings that methods with a prefix tree share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from veilog.methods.settings import LargestLog, Range, Settings
from veilog.privacy.domain import Fact


@dataclass(frozen=True, kw_only=True)
class TreeSettings(Settings):
    """How deep a tree grows, how its levels share the budget, and how its cases are counted in the end."""

    depth: Annotated[
        int | None,
        "length of the longest prefix; certified, a noisy 80 % quantile if not given",
        Range(1, 10_000),
    ] = None
    split: Annotated[Literal["uniform", "decreasing"], "how the depths share the budget"] = "uniform"
    noise_prefixes: Annotated[float, "empty prefixes expected to survive at each level", Range(1e-6, 1e4)] = 1.0
    count_share: Annotated[float, "share of the budget for the final counts", Range(0.01, 0.99)] = 0.2
    rest: Annotated[
        Literal["stop", "drop", "share"],
        "cases of a prefix that nothing continues: released as traces that stop there, dropped, or shared out",
    ] = "stop"
    consistency: Annotated[bool, "whether counts of prefixes and of their continuations are reconciled"] = True
    largest_log: LargestLog = 1_000_000


def needs_of_tree(settings: TreeSettings) -> frozenset[Fact]:
    """The activities; also a bound on the length where the depth is to be found from the lengths of traces."""
    return frozenset({"activities"}) if settings.depth else frozenset({"activities", "max_length"})
