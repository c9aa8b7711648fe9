"""Conformance: whether the release comes to the same verdicts on a model as the original does.

Of a net a case keeps all or nothing; of a list of constraints it keeps those that it does not break, and conforms if it
breaks none. Where no model is given, the original's own rules are one: responses and precedences that hold in 95 % of
the cases that activate them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Log
from veilog.measures.use_cases.conformance.declare import held, mined
from veilog.measures.use_cases.conformance.model_files import Model, read_model
from veilog.measures.use_cases.conformance.nets import Acceptor
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of
from veilog.mining.replay import Net
from veilog.rules.rule_files import Constraint


def conformance_rate(model: Model, variants: Variants) -> float:
    """Return the share of the cases that a model allows; :class:`ParameterError` where it cannot be found of all."""
    if isinstance(model, Net):
        found = _acceptor(model).verdicts(variants)
        if not found.decided.all():
            open_ = int(variants.counts[~found.decided].sum())
            raise ParameterError("conformance-cases-undecided", parameter="model", open=open_, cases=variants.cases)
        conforming = found.conforming
    else:
        conforming = np.logical_and.reduce([one.kept for one in held(model, variants)])
    return float(variants.counts[conforming].sum() / variants.cases)


@lru_cache(maxsize=1)
def _acceptor(net: Net) -> Acceptor:
    """Return what is known of a net: a use case asks about many logs of mostly the same variants."""
    return Acceptor(net)


def support_error(constraints: Sequence[Constraint], used: Variants, judged: Variants) -> float | None:
    """Return by how much the constraints' supports differ, on average; where none is active in either log, None.

    A constraint that no case of one log activates has the support 0 there: nobody can see that it holds.
    """
    pairs = zip(held(constraints, used), held(constraints, judged), strict=True)
    errors = [abs(one.support - other.support) for one, other in pairs if one.activated or other.activated]
    return statistics.fmean(errors) if errors else None


def _score(used: Log, judged: Log, asked: UseCaseOptions) -> dict[str, float | None]:
    assert isinstance(used, Variants)
    assert isinstance(judged, Variants)
    if asked.model is None:
        rules = mined(judged)
        if not rules:
            raise ParameterError("conformance-without-model", parameter="model")
        return {"rules": support_error(rules, used, judged)}
    model = read_model(asked.model)
    return {
        "rate": abs(conformance_rate(model, used) - conformance_rate(model, judged)),
        "support": None if isinstance(model, Net) else support_error(model, used, judged),
    }


CONFORMANCE = UseCase(score=_score, **facts_of("conformance"))
