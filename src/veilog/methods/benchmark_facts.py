"""How the methods did on public logs, for sentences about them: made from the results of the frontier, not written.

The data, ``measured.json``, comes from ``python bench/run.py --publish frontier --quick``. It lies here, since what
suggests a method and what shows the methods speak of it, and both come before the experiments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from veilog.errors import ParameterError


@dataclass(frozen=True)
class BenchmarkSimilarity:
    """Mean relative log similarity of every certified method's release, on public logs at some epsilons."""

    logs: tuple[str, ...]
    epsilons: tuple[str, ...]
    runs: int
    variants_only: tuple[str, ...]
    """The methods that take no delta and release variants: among them the first choice is sought."""
    similarity: Mapping[str, Mapping[str, Mapping[str, float]]]
    """By what was compared (a method, with its delta where it has one), log and epsilon."""

    @property
    def settings(self) -> int:
        """On how many logs and epsilons together."""
        return len(self.logs) * len(self.epsilons)

    def won(self, one: str, others: tuple[str, ...]) -> int:
        """In how many settings the mean of one is above those of all others."""
        return sum(
            all(self.similarity[one][log][epsilon] > self.similarity[other][log][epsilon] for other in others)
            for log in self.logs
            for epsilon in self.epsilons
        )


@lru_cache(maxsize=1)
def measured() -> BenchmarkSimilarity:
    """Return what was measured."""
    told = json.loads((files(__package__) / "measured.json").read_text())
    lists = {name: tuple(told[name]) for name in ("logs", "epsilons", "variants_only")}
    return BenchmarkSimilarity(runs=told["runs"], similarity=told["similarity"], **lists)


def wins_against(method: str) -> dict[str, int]:
    """Return in how many settings evolve is ahead of a method, ``won``, of how many, ``all``.

    Of evolve itself: in how many it is ahead of all others that take no delta and release variants.

    >>> found = ahead("sapa")
    >>> found["won"] == found["all"]
    True
    """
    found = measured()
    if method not in found.similarity:
        raise ParameterError("method-not-measured", parameter="method", method=method)
    others = tuple(name for name in found.variants_only if name != "evolve") if method == "evolve" else (method,)
    return {"won": found.won("evolve", others), "all": found.settings}


def ahead_in(method: str) -> str:
    """Return :func:`wins_against` as a sentence has it: ``"21 of 24"``, or ``"all"``."""
    found = wins_against(method)
    return "all" if found["won"] == found["all"] else "{won} of {all}".format_map(found)
