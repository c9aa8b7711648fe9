"""The methods: each a plain function of the curator and its parameters; METHODS lists them for people and programs."""

from collections.abc import Callable, Mapping
from typing import Any

from veilog.errors import ParameterError
from veilog.methods.amun import AMUN
from veilog.methods.df_laplace import df_laplace
from veilog.methods.evolve import evolve
from veilog.methods.laplace import laplace
from veilog.methods.libra import LIBRA
from veilog.methods.method import Method, Parameter
from veilog.methods.pretsa import PRETSA
from veilog.methods.pripel import PRIPEL
from veilog.methods.sacofa import sacofa
from veilog.methods.sapa import sapa
from veilog.methods.tlkc import TLKC
from veilog.methods.travag import TRAVAG
from veilog.methods.travas import travas, utravas
from veilog.privacy.domain import Fact

__all__ = ["METHODS", "Method", "Parameter", "method_named"]

_TRAVAS_PAPER = (
    "Rafiei, Wangelik, van der Aalst: TraVaS: Differentially Private Trace Variant Selection for Process Mining (2022)"
)

_SACOFA_PAPER = (
    "Fahrenkrog-Petersen, Kabierski, van der Aa, Weidlich: Semantics-aware Mechanisms for Control-flow Anonymization "
    "in Process Mining (2023)"
)

_LARGEST_LOG = Parameter(
    "largest_log", int, 1_000_000, "cases of the largest log expected; a budget too small even for it is refused", 1
)
_TREE = (
    Parameter(
        "depth", int, None, "length of the longest prefix; certified, a noisy 80 % quantile if not given", 1, 10_000
    ),
)
_TREE_COUNTS = (
    Parameter("split", str, "uniform", "how the depths share the budget", choices=("uniform", "decreasing")),
    Parameter("noise_prefixes", float, 1.0, "empty prefixes expected to survive at each level", 1e-6, 1e4),
    Parameter("count_share", float, 0.2, "share of the budget for the final counts", 0.01, 0.99),
    Parameter(
        "rest",
        str,
        "stop",
        "cases of a prefix that nothing continues: released as traces that stop there, dropped, or shared out",
        choices=("stop", "drop", "share"),
    ),
    Parameter("consistency", bool, True, "whether counts of prefixes and of their continuations are reconciled"),
    _LARGEST_LOG,
)

_RELATION = (
    Parameter(
        "bound", int, None, "directly-follows pairs a case counts in full; a noisy 60 % quantile if not given", 1, 10**6
    ),
    Parameter("playout", str, None, "paper, or guided (the default when certified)", choices=("paper", "guided")),
    Parameter("noise_relations", float, 1.0, "relations expected to survive that are only noise", 1e-6, 1e6),
    Parameter("count_share", float, 0.1, "share of the budget for the number of cases, certified", 0, 0.9),
    _LARGEST_LOG,
)


def _alphabet(values: dict[str, Any]) -> frozenset[Fact]:
    """The activities, whatever the parameters are."""
    return frozenset({"activities"})


def _alphabet_and_length_without(parameter: str) -> Callable[[dict[str, Any]], frozenset[Fact]]:
    """The activities; also a bound on the length where this parameter is to be found from the lengths of traces."""

    def needs(values: dict[str, Any]) -> frozenset[Fact]:
        return frozenset({"activities"}) if values[parameter] else frozenset({"activities", "max_length"})

    return needs


_METHODS = (
    Method(
        name="evolve",
        paper="this project: docs/methods/evolve.md",
        releases="variants",
        budget="epsilon, delta optional",
        guarantee="epsilon for one case, proven: noisy relations and votes for prototypes; a delta adds real variants",
        as_published="the same",
        run=evolve,
        needs=_alphabet,
        parameters=(
            Parameter("rounds", int, None, "rounds of votes; by default one or two, by the noisy size", 1, 10),
            Parameter("max_length", int, 60, "the longest trace that is imagined", 1, 1000),
            Parameter(
                "real_share",
                float,
                None,
                "with a delta, share of epsilon that finds real variants; chosen if not given",
                0,
                0.9,
            ),
            Parameter("only_real", bool, False, "with a delta, release only variants that are certain to be real"),
            _LARGEST_LOG,
        ),
        delta_of_use=lambda values: values["real_share"] is None or values["real_share"] > 0,
    ),
    Method(
        name="laplace",
        paper=("Mannhardt, Koschmider, Baracaldo, Weidlich, Michael: Privacy-Preserving Process Mining (2019)"),
        releases="variants",
        budget="epsilon",
        guarantee="epsilon for one case, proven: the depths share the budget",
        as_published="depth times epsilon: a case is counted again at every depth",
        run=laplace,
        needs=_alphabet_and_length_without("depth"),
        parameters=(
            *_TREE,
            Parameter(
                "threshold", int, None, "count from which on a prefix survives; found from the noise if not given", 1
            ),
            *_TREE_COUNTS,
        ),
    ),
    Method(
        name="sacofa",
        paper=_SACOFA_PAPER,
        releases="variants",
        budget="epsilon",
        guarantee="epsilon for one case, proven: rules are declared or learned with a share of the budget",
        as_published="none: the rules are read off the raw log; with declared rules depth times epsilon",
        run=sacofa,
        needs=_alphabet_and_length_without("depth"),
        parameters=(
            *_TREE,
            Parameter("threshold_harmful", int, None, "count from which on a prefix that breaks a rule survives", 1),
            Parameter("threshold_harmless", int, None, "count from which on a prefix that breaks none survives", 1),
            Parameter("rules", str, None, "file of rules known from elsewhere than the log"),
            Parameter(
                "rule_share", float, None, "share of the budget that learns rules; 0.1 if no file is given", 0, 0.9
            ),
            Parameter("score", str, "binary", "how bad breaking rules is", choices=("binary", "continuous")),
            Parameter("score_bound", int, 3, "with the continuous score, broken rules that count at most", 1, 1000),
            *_TREE_COUNTS,
        ),
    ),
    Method(
        name="df-laplace",
        paper=_SACOFA_PAPER,
        releases="variants",
        budget="epsilon",
        guarantee="epsilon for one case, proven: what a case adds to the relation is bounded",
        as_published="(length bound + 1) times epsilon where a length bound is declared, otherwise none",
        run=df_laplace,
        needs=_alphabet_and_length_without("bound"),
        parameters=_RELATION,
    ),
    Method(
        name="sapa",
        paper=_SACOFA_PAPER,
        releases="variants",
        budget="epsilon",
        guarantee="epsilon for one case, proven: scores come from the noisy relation",
        as_published="none: scores and the set of observed relations are raw, and noise is redrawn until positive",
        run=sapa,
        needs=_alphabet_and_length_without("bound"),
        parameters=(
            Parameter("k", int, 1, "longest distance of activities that may follow each other directly", 1, 1000),
            *_RELATION,
        ),
    ),
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
    TRAVAG,
    AMUN,
    PRIPEL,
    LIBRA,
    TLKC,
    PRETSA,
)

METHODS: Mapping[str, Method] = {method.name: method for method in _METHODS}


def method_named(name: str) -> Method:
    """The method of this name; a :class:`ParameterError` that lists them all where there is none."""
    if name not in METHODS:
        raise ParameterError(
            f"There is no method {name!r}.", parameter="method", advice=f"Methods: {', '.join(METHODS)}."
        )
    return METHODS[name]
