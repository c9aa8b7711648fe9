"""Our own parts keep the contracts for packages, and each breach is named."""

from __future__ import annotations

import itertools

import pytest
from refusals import refused

from veilog.errors import MissingExtraError, ParameterError
from veilog.measures import MEASURES, Found, Measure, Pair, Quantity
from veilog.testing import check_measure

OURS = [name for name in MEASURES if not MEASURES.added_by(name)]


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("name", OURS)
def test_our_measures_keep_the_contract(name: str) -> None:
    try:
        check_measure(MEASURES[name])
    except MissingExtraError as error:
        pytest.skip(str(error))


def share(pair: Pair) -> float:
    """Return the share of the original's activities that the release has."""
    original, released = pair.variants
    if not original.labels:
        raise ParameterError("The original log has no activities.", parameter="original")
    return len(set(original.labels) & set(released.labels)) / len(original.labels)


def measure(find: object, **more: object) -> Measure:
    quantity = Quantity("activities", "share", "higher", best=1.0, high=1.0)
    facts: dict[str, object] = {"name": "planted", "find": find, "quantities": (quantity,)} | more
    return Measure(**facts)  # type: ignore[arg-type]


def test_a_measure_that_is_right_passes() -> None:
    check_measure(measure(share))


def not_finite(pair: Pair) -> float:
    _, released = pair.variants
    return float("nan") if released.cases == 0 else share(pair)


def changes(pair: Pair) -> float:
    found = share(pair)
    variants = pair.variants[1]
    object.__setattr__(variants, "counts", variants.counts * 2)
    return found


COUNT = itertools.count()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (measure(lambda pair: 1 - share(pair)), "Equal logs have not the best value"),
        (measure(lambda pair: 1.5 * share(pair)), "outside its range"),
        (measure(lambda pair: -share(pair)), "outside its range"),
        (measure(share, symmetric=True), "not symmetric"),
        (measure(lambda pair: share(pair) / (1 + next(COUNT))), "not deterministic"),
        (measure(changes), "changes a log"),
        (measure(not_finite), "not finite"),
        (measure(lambda pair: None), "neither a value nor a reason"),
        (measure(lambda pair: Found(None)), "neither a value nor a reason"),
        (measure(lambda pair: 1 / len(pair.variants[0])), "Its errors are no VeilogError"),
        (measure(lambda pair: share(pair) if pair.whole else 0.0), "needs variants only"),
        (measure(share, quantities=(Quantity("a", "b", "higher", best=0.5),)), "better than the best"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_measure_that_breaks_a_rule_is_told_which(broken: Measure, rule: str) -> None:
    with pytest.raises(AssertionError, match=rule):
        check_measure(broken)


def test_of_a_measure_whose_part_is_not_installed_nothing_is_said() -> None:
    def missing(pair: Pair) -> float:
        raise MissingExtraError("This", extra="models")

    with pytest.raises(MissingExtraError):
        check_measure(measure(missing))


def test_a_measure_says_what_it_is_or_is_refused() -> None:
    for wrong in ({"name": "not a name"}, {"needs": "money"}, {"extra": "gold"}):
        with pytest.raises(ParameterError):
            measure(share, **wrong)
    with refused(ParameterError, "measure-direction-missing", title="a"):
        measure(share, quantities=(Quantity("a", "b", "sideways"),))  # type: ignore[arg-type]
