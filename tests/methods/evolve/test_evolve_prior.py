"""evolve with a prior: the votes, the traces, and one vote of each case."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.messages import Message
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.prior import MISFITS, far_from, misfits, public_traces
from veilog.methods.evolve.traces import nearest, strings
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise

LOG = hospital(800, seed=1).variants
OTHERS = hospital(3000, seed=2).variants
ACTIVITIES = tuple(sorted(LOG.labels))


def run(prior: Variants | None, epsilon: str = "0.1", seed: int = 1) -> tuple[Variants, Curator, list[str]]:
    codes: list[str] = []
    curator = Curator(LOG, domain=ALL_FROM_LOG, randomness=noise.seeded(seed))
    return evolve(curator, replace(requested(codes, epsilon), prior=prior), EvolveSettings()), curator, codes


def requested(codes: list[str], epsilon: str) -> Request:
    def remark(text: str | Message) -> None:
        assert isinstance(text, Message)
        codes.append(text.code)

    return Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: math.nan, remark)


def renamed(log: Variants) -> Variants:
    """Return the same process with its activities exchanged."""
    names = dict(zip(ACTIVITIES, ACTIVITIES[3:] + ACTIVITIES[:3], strict=True))
    return Variants.from_dict({tuple(names[a] for a in trace): count for trace, count in log.to_dict().items()})


@pytest.mark.false_alarm(1e-6, "a release from the prior is nearer by ten deviations of what seeds change")
def test_a_prior_of_the_same_process_is_used_and_helps() -> None:
    made, _, codes = run(OTHERS)
    assert "evolve-prior-used" in codes
    alone, _, _ = run(None)
    assert relative_log_similarity(LOG, made).value > relative_log_similarity(LOG, alone).value + 0.05


@pytest.mark.false_alarm(1e-6, "noise of the first votes would have to be eight deviations off")
def test_a_prior_of_another_process_is_dropped() -> None:
    made, _, codes = run(renamed(OTHERS), epsilon="0.5")
    assert "evolve-prior-dropped" in codes
    assert made.cases > 0


def test_where_noise_hides_how_a_log_differs_the_prior_is_released_as_it_is() -> None:
    """A prior is released as it is where noise hides the difference.

    That is so before the first votes, or after them where noise made the first number of cases too high.
    """
    asked = set()
    for seed in range(3):
        made, curator, codes = run(OTHERS, epsilon="0.02", seed=seed)
        assert "evolve-prior-as-it-is" in codes
        questions = tuple(charge.question for charge in curator.charges)
        assert questions[-1] == "count"
        asked.add(questions)
        assert sum(charge.epsilon for charge in curator.charges) == Fraction("0.02")
        as_it_is = relative_log_similarity(LOG, OTHERS).value
        assert relative_log_similarity(LOG, made).value == pytest.approx(as_it_is, abs=0.04)
    assert asked == {("count", "count"), ("count", "histogram", "count")}


def test_a_prior_without_public_activities_asks_as_without_one() -> None:
    made, _, codes = run(Variants.from_dict({("elsewhere",): 10}))
    assert "prior-without-activities" in codes
    alone, _, _ = run(None)
    assert made == alone


@pytest.mark.parametrize("prior", [OTHERS, renamed(OTHERS)], ids=["used", "dropped"])
def test_the_charges_add_up_to_epsilon(prior: Variants) -> None:
    _, curator, _ = run(prior)
    assert sum(charge.epsilon for charge in curator.charges) == Fraction("0.1")


def test_the_traces_of_a_prior_have_public_activities_alone() -> None:
    prior = Variants.from_dict({("a", "x", "b"): 2, ("a", "b"): 1, ("x",): 5, ("b",) * 9: 1})
    traces, weights = public_traces(prior, ("a", "b"), 4)
    assert strings(traces) == ["\x00\x01", "\x01" * 4]
    assert weights.tolist() == [0.75, 0.25]


def test_a_model_is_used_where_little_else_is_known() -> None:
    for epsilon, code in (("0.02", "evolve-prior-used"), ("1", "evolve-model-not-used")):
        codes: list[str] = []
        curator = Curator(LOG, domain=ALL_FROM_LOG, randomness=noise.seeded(2))
        request = replace(requested(codes, epsilon), prior=OTHERS, prior_of_model=True)
        evolve(curator, request, EvolveSettings())
        assert code in codes
        assert "evolve-prior-as-it-is" not in codes


def test_activities_that_are_not_declared_are_not_released() -> None:
    curator = Curator(LOG, domain=Domain(activities=ACTIVITIES[:-1]), randomness=noise.seeded(1))
    request = Request(Fraction(1), Fraction(0), False, lambda *_: None, lambda a, b: math.nan, prior=OTHERS)
    assert ACTIVITIES[-1] not in evolve(curator, request, EvolveSettings()).labels


# How far the votes believe it ---------------------------------------------------------------------------------------


def trust_of(*given: list[np.ndarray] | list[float]) -> float:
    return math.exp(-float(misfits(*given) @ np.log(MISFITS)))


def test_votes_as_expected_make_a_prior_count_much_and_others_little() -> None:
    expected = np.full(20, 0.05)
    off = np.where(np.arange(20) % 2, 0.09, 0.01)
    assert trust_of([expected], [expected], [0.001]) > 1000
    assert trust_of([expected], [off], [0.001]) == pytest.approx(0.05 / 0.04**2, rel=0.5)


def test_votes_that_noise_decides_leave_the_middle_of_all_misfits() -> None:
    expected = np.full(20, 0.05)
    middle = 1 / math.exp(float(np.log(MISFITS).mean()))
    assert trust_of([expected], [expected], [100.0]) == pytest.approx(middle, rel=0.01)


def test_far_lies_between_a_prior_and_its_events_in_random_order() -> None:
    traces, weights = public_traces(OTHERS, ACTIVITIES, 200)
    often = np.argsort(-weights)[:20]
    far, own, shuffled = far_from(traces.take(often), traces, weights, np.random.default_rng(1))
    assert 0 < far < 1
    assert own < 0.3
    assert shuffled > 0.6


@given(
    st.lists(st.text("abc", max_size=6), min_size=1, max_size=8),
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=4),
    st.floats(0, 1),
)
def test_each_case_votes_for_one_cell_whatever_the_others_are(rows: list[str], columns: list[str], far: float) -> None:
    together = nearest(rows, columns, far)
    assert together.tolist() == [nearest([row], columns, far)[0] for row in rows]
    assert ((together >= 0) & (together <= len(columns))).all()
