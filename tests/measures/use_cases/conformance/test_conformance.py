"""Conformance as a use case compares verdicts with those of the original's halves."""

from pathlib import Path

import pytest

from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures.use_cases import Assessment, UseCaseOptions, judge
from veilog.measures.use_cases.conformance import conformance_rate, read_model
from veilog.messages import Message

ORIGINAL = Variants.from_dict({("a", "b"): 70, ("a", "c", "b"): 25, ("a", "c"): 5})
WORSE = Variants.from_dict({("a", "b"): 60, ("a", "c"): 40})


def judged(released: Variants, model: Path | None, original: Variants = ORIGINAL) -> Assessment:
    return judge(Pair(original, released), ["conformance"], UseCaseOptions(model=model))["conformance"]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.decl"
    path.write_text("Init[a]\nResponse[c, b]\n")
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.pnml"
    places = "".join(f'<place id="p{i}"/>' for i in range(3))
    steps = "".join(f'<transition id="{i}"><name><text>{i}</text></name></transition>' for i in "abc")
    ways = (("p0", "a"), ("a", "p1"), ("p1", "b"), ("b", "p2"), ("p1", "c"), ("c", "p1"))
    arcs = "".join(f'<arc source="{source}" target="{target}"/>' for source, target in ways)
    path.write_text(f"<pnml><net>{places}{steps}{arcs}</net></pnml>")
    return path


def test_the_rate_of_constraints_is_of_cases_that_break_none(rules: Path) -> None:
    model = read_model(rules)
    assert conformance_rate(model, ORIGINAL) == pytest.approx(0.95)
    assert conformance_rate(model, WORSE) == pytest.approx(0.6)
    assert conformance_rate(model, Variants.from_dict({(): 1, ("a",): 3})) == pytest.approx(0.75)


def test_errors_are_differences_of_the_original_and_the_release(rules: Path) -> None:
    found = judged(WORSE, rules)
    rate, support = found.aspects["rate"], found.aspects["support"]
    assert rate.value == pytest.approx(0.35)
    assert support.value == pytest.approx((0 + 25 / 30) / 2)
    assert rate.original == support.original == 0
    assert rate.unprotected == pytest.approx(0.95 - 2 / 3)
    assert rate.sample is not None
    assert 0 < rate.sample < 0.08
    assert found.aspects["rules"].value is None
    assert found.grade == "poor"
    assert judged(ORIGINAL, rules).grade == "good"


def test_a_net_has_a_rate_and_no_support(net: Path) -> None:
    found = judged(WORSE, net)
    assert found.aspects["rate"].value == pytest.approx(0.35)
    assert found.aspects["support"].value is None


def test_a_difference_of_a_point_is_none(net: Path) -> None:
    allowed = Variants.from_dict({("a", "b"): 1000})
    nearly = Variants.from_dict({("a", "b"): 995, ("a",): 5})
    found = judged(nearly, net, allowed)
    assert found.aspects["rate"].sample == 0
    assert found.grade == "good"
    assert judged(Variants.from_dict({("a", "b"): 95, ("a",): 5}), net, allowed).aspects["rate"].share == pytest.approx(
        0.2
    )


def test_without_a_model_the_originals_own_rules_are_one() -> None:
    own = judged(WORSE, None)
    assert own.aspects["rate"].value is None
    # of response[a, b] .95 of the cases are left with .6; precedence[a, b] and [a, c] hold in both
    assert own.aspects["rules"].value == pytest.approx(0.35 / 3)
    kept = Variants.from_dict({("a", "b"): 9, ("b", "a"): 1})
    assert judged(kept, None).aspects["rules"].value == pytest.approx((0.05 + 0.1 + 1) / 3)
    none = judged(WORSE, None, Variants.from_dict({("a", "b"): 5, ("b", "a"): 5}))
    assert none.grade == "not judged"
    assert none.reason == str(Message("conformance-without-model"))


def test_a_model_that_cannot_be_read_is_the_reason(tmp_path: Path) -> None:
    found = judged(WORSE, tmp_path / "none.bpmn")
    assert found.grade == "not judged"
    assert "cannot be read" in found.reason
