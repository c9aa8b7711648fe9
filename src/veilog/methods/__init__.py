"""The methods: each a plain function of the curator and its parameters; METHODS lists them for people and programs."""

from collections.abc import Mapping

from veilog.methods.method import Method, Parameter
from veilog.methods.travas import travas, utravas

__all__ = ["METHODS", "Method", "Parameter"]

_TRAVAS_PAPER = (
    "Rafiei, Wangelik, van der Aalst: TraVaS: Differentially Private Trace Variant Selection for Process Mining (2022)"
)

_METHODS = (
    Method(
        name="travas",
        paper=_TRAVAS_PAPER,
        releases="variants",
        budget="epsilon and delta",
        guarantee="(epsilon, delta) for one case, proven",
        as_published="the same: the paper's calibration holds",
        run=travas,
    ),
    Method(
        name="utravas",
        paper=_TRAVAS_PAPER,
        releases="variants",
        budget="epsilon and delta",
        guarantee="(epsilon, delta) for one case, proven: a fixed number of subqueries at (epsilon/n, delta/n) each",
        as_published="none: the number of subqueries is chosen by how well the results score on the raw log",
        run=utravas,
        parameters=(
            Parameter("subqueries", int, None, "number of subqueries; as published, the largest number tried", 1, 1000),
            Parameter("repetitions", int, 10, "as published: runs averaged for each number tried", 1, 1000),
        ),
    ),
)

METHODS: Mapping[str, Method] = {method.name: method for method in _METHODS}
