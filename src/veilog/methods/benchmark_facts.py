"""Results of the methods on public logs, for sentences about them.

They come from the results of the frontier and are not written by hand. ``python bench/run.py --publish frontier
--quick`` makes the data, ``measured.json``. It lies here because the suggestion of a method and the pages about methods
use it, and both come before the experiments.
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
    """Mean relative log similarity of every certified method on public logs.

    It is that of a release at some epsilons.
    """

    logs: tuple[str, ...]
    epsilons: tuple[str, ...]
    runs: int
    variants_only: tuple[str, ...]
    """Methods that take no delta and release variants; the first choice is among them."""
    similarity: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Means by method (with its delta where it has one), log and epsilon."""

    @property
    def settings(self) -> int:
        """Number of pairs of a log and an epsilon."""
        return len(self.logs) * len(self.epsilons)

    def won(self, one: str, others: tuple[str, ...]) -> int:
        """Return in how many settings one method's mean is above those of all others."""
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
    """Return in how many settings evolve is ahead of a method, ``won``, of ``all``.

    For evolve itself, the others are all that take no delta and release variants.

    >>> found = wins_against("sapa")
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
