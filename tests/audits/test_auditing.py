"""The auditor catches mechanisms that are broken and clears those that are not.

Every certified method is audited at a confidence of 1 - 1e-8, so that all tests here together raise a false alarm less
often than once in 10^6 if their methods are right (the seeds are fixed besides).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from refusals import refused

import veilog
from veilog.audits.attacks import ALPHABET, LONGEST, MANY_CASES, Attempt, Score, attempts, attempts_on
from veilog.audits.blackbox import Proof, audit, audit_runs
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods import METHODS

Floats = npt.NDArray[np.float64]
NOTHING = Variants.from_dict({("a",): 1})
PAIR = [Attempt("a case", NOTHING, NOTHING, (Score("all cases"),))]
SURE = 1 - 1e-8


def attacked(mechanism: object, runs: int, delta: float = 0.0, confidence: float = 0.999) -> Proof:
    """Return the audit of a mechanism of (case there or not, outputs, generator)."""

    def run(attempt: Attempt, with_: bool, seeds: Sequence[int]) -> Floats:
        rng = np.random.default_rng(seeds[0])
        return np.asarray(mechanism(with_, len(seeds), rng), dtype=float)[:, None]  # type: ignore[operator]

    return audit_runs(run, PAIR, runs, delta, confidence, np.random.SeedSequence(5))


def discrete_laplace(epsilon: float, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    p = -np.expm1(-epsilon)
    return np.asarray(rng.geometric(p, n) - rng.geometric(p, n), dtype=np.int64)


# Sound and broken mechanisms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_sound_mechanism_is_cleared_and_the_audit_is_sharp(epsilon: float) -> None:
    found = attacked(lambda there, n, rng: 20 + there + discrete_laplace(epsilon, n, rng), 40_000)
    assert 0.85 * epsilon < found.tally.epsilon <= epsilon


@pytest.mark.nightly
def test_noise_that_int_cuts_off_is_caught() -> None:
    """int() makes 0 of all noise in (-1, 1): a nominal 0.01 becomes 0.01 + ln 2."""

    def truncated(there: bool, n: int, rng: np.random.Generator) -> Floats:
        return 20 + there + np.trunc(rng.laplace(0, 1 / 0.01, n))

    assert attacked(truncated, 400_000).tally.epsilon > 0.3


def test_an_ignored_sensitivity_is_caught() -> None:
    """Noise for one place is caught where a case counts in five."""

    def summed(there: bool, n: int, rng: np.random.Generator) -> Floats:
        return np.sum([20 + there + discrete_laplace(0.5, n, rng) for _ in range(5)], axis=0)

    assert attacked(summed, 20_000).tally.epsilon > 0.5


def test_a_budget_that_is_not_split_is_caught() -> None:
    """Two queries at the whole epsilon each are caught."""

    def smallest(there: bool, n: int, rng: np.random.Generator) -> Floats:
        return np.minimum(there + discrete_laplace(1.0, n, rng), there + discrete_laplace(1.0, n, rng))

    assert attacked(smallest, 40_000).tally.epsilon > 1.0


def test_sampling_with_replacement_under_poisson_accounting_is_caught() -> None:
    """N draws with replacement of N cases exceed a charge for one draw per case."""

    def sampled(there: bool, n: int, rng: np.random.Generator) -> Floats:
        times_drawn = rng.binomial(10, 0.1, n) if there else np.zeros(n)
        return times_drawn + discrete_laplace(1.0, n, rng)

    assert attacked(sampled, 200_000).tally.epsilon > 1.0


def test_a_failure_within_delta_is_not_held_against_a_mechanism() -> None:
    def rarely_tells(there: bool, n: int, rng: np.random.Generator) -> Floats:
        return np.where(rng.random(n) < 0.01, 1000.0 * there, discrete_laplace(0.5, n, rng))

    assert attacked(rarely_tells, 40_000, delta=0.01).tally.epsilon <= 0.5
    assert attacked(rarely_tells, 40_000, delta=0.0).tally.epsilon > 1.0


# The methods ----------------------------------------------------------------------------------------------------------

QUICK = ("travas", "utravas", "laplace", "sacofa", "df-laplace", "sapa")
"""Methods that release in milliseconds; the benchmark of claims audits the others at length."""
AUDITED = [(name, epsilon, runs) for name in QUICK for epsilon, runs in (("0.5", 90), ("2", 310))]
AUDITED += [("evolve", "0.5", 90)]
SOME = ["a canary variant", "a case with many new directly-follows pairs", "one more than 8 cases of a variant"]


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("method", "epsilon", "runs"), AUDITED)
def test_a_certified_method_keeps_its_epsilon(method: str, epsilon: str, runs: int) -> None:
    delta = "1e-3" if METHODS[method].needs_delta else 0
    some = [a for a in attempts(METHODS[method].full_log) if a.attack in SOME]
    found = audit(method, epsilon=epsilon, delta=delta, pairs=some, runs=runs, confidence=SURE, seed=1, processes=1)
    assert found.derived_epsilon == float(epsilon)
    assert found.audited_epsilon <= found.derived_epsilon
    assert [attack for attack, _ in found.tried] == SOME


@pytest.mark.nightly
def test_travas_is_audited_sharply() -> None:
    near = [a for a in attempts(False) if a.attack == "one more than 24 cases of a variant"]
    found = audit("travas", epsilon=1, delta="1e-3", pairs=near, runs=4000, seed=2, processes=1)
    assert 0.8 <= found.audited_epsilon <= 1.0
    assert "Nothing contradicts" in found.verdict


@pytest.mark.slow
def test_the_published_calibration_of_laplace_is_caught() -> None:
    near = [a for a in attempts(False) if a.attack == "one more than 4 cases of a variant"]
    asked = {"as_published": True, "depth": 4, "program": "sacofa"}
    found = audit("laplace", epsilon="0.5", pairs=near, runs=800, seed=1, processes=1, **asked)
    assert found.nominal_epsilon == 0.5 and found.derived_epsilon == 2
    assert 0.5 < found.audited_epsilon <= 2
    assert found.verdicts[0].code == "audit-contradicts-nominal"


@pytest.mark.nightly
def test_a_person_with_many_cases_exceeds_the_epsilon_of_a_case_unless_people_are_protected() -> None:
    bare = audit("travas", epsilon=1, delta="1e-3", person_cases=20, runs=400, seed=1, processes=1)
    assert "promises nothing" in bare.verdict and "20 cases" in bare.verdict
    assert bare.audited_epsilon > 1
    bounded = audit(
        "travas", epsilon=1, delta="1e-3", person_cases=20, unit="case:person", max_cases=4, runs=300, seed=1,
        processes=1, confidence=SURE,
    )  # fmt: skip
    assert bounded.derived_epsilon == 1 and bounded.audited_epsilon <= 1


@pytest.mark.nightly
def test_an_audit_repeats_itself_under_a_seed() -> None:
    first, second = (audit("travas", epsilon=1, delta="1e-3", runs=300, seed=4, processes=1) for _ in range(2))
    assert (first.attack, first.tally) == (second.attack, second.tally)


@pytest.mark.nightly
def test_an_audit_says_everything_in_json() -> None:
    told = audit("travas", epsilon=1, delta="1e-3", runs=200, seed=4, processes=1).to_json()
    wanted = {"nominal_epsilon", "derived_epsilon", "audited_epsilon", "confidence", "attack", "runs"}
    assert wanted <= told.keys()


# Neighbours -----------------------------------------------------------------------------------------------------------


def cases_of(log: object) -> dict[tuple[str, ...], int]:
    return dict((log if isinstance(log, Variants) else log.variants).to_dict())  # type: ignore[attr-defined]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("cases", [1, 4])
def test_neighbours_differ_by_the_cases_of_one_person_and_by_nothing_that_is_public(whole: bool, cases: int) -> None:
    for attempt in attempts(whole, cases):
        before, after = cases_of(attempt.without), cases_of(attempt.with_)
        more = {t: n - before.get(t, 0) for t, n in after.items() if n != before.get(t, 0)}
        assert list(more.values()) == [attempt.cases], attempt.attack
        assert attempt.cases == (MANY_CASES if "person" in attempt.attack else cases)
        for found in (before,) if attempt.breaks else (before, after):
            assert {a for t in found for a in t} == set(ALPHABET)
            assert max(len(t) for t in found) == LONGEST


@pytest.mark.parametrize("whole", [False, True])
def test_neighbours_of_a_users_log_differ_by_one_of_its_cases(whole: bool) -> None:
    log = veilog.Variants.from_dict({tuple("abc"): 5, tuple("ab"): 1, tuple("acb"): 2})
    own = veilog.release(log, "travas", epsilon=9, delta="0.5", seed=1, allow_no_protection=True).log if whole else log
    known = cases_of(own)
    for attempt in attempts_on(own):
        less = cases_of(attempt.without)
        assert sum(known.values()) - sum(less.values()) == 1
        assert all(n <= known[t] for t, n in less.items())


@pytest.mark.nightly
def test_an_audit_attacks_the_users_own_log() -> None:
    log = Variants.from_dict({tuple("abc"): 50, tuple("ab"): 30, tuple("acb"): 20})
    found = audit("travas", epsilon=1, delta="1e-3", log=log, runs=400, seed=1, processes=1, confidence=SURE)
    assert found.audited_epsilon <= 1


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_too_few_runs_to_say_anything_are_refused_with_how_many_would_do() -> None:
    with refused(ParameterError, "audit-runs-too-few") as error:
        audit("travas", epsilon=3, delta="1e-3", runs=50)
    enough = error.value.message.values["needed"]
    assert audit("travas", epsilon=3, delta="1e-3", runs=enough, processes=1, seed=1).runs == enough


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"runs": 0}, "audit-runs-not-whole"),
        ({"seed": -1}, "disclosure-seed-invalid"),
        ({"confidence": 1.0}, "audit-confidence-out-of-range"),
        ({"confidence": float("nan")}, "audit-confidence-out-of-range"),
        ({"person_cases": 0}, "audit-person-cases-invalid"),
        ({"processes": 0}, "processes-out-of-range"),
        ({"unit": "patient", "max_cases": 2}, "audit-person-column-other"),
        ({"log": NOTHING, "person_cases": 3}, "audit-log-of-one-case"),
        ({"epsilon": float("nan")}, "budget-not-finite"),
    ],
)
def test_audits_that_make_no_sense_are_refused(changes: dict[str, object], word: str) -> None:
    with refused(ParameterError, word):
        audit("travas", **{"epsilon": 1, "delta": "1e-3", **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("white_box", [False, True])
def test_a_log_without_cases_is_no_log_to_attack_with(white_box: bool) -> None:
    with refused(ParameterError, "audit-log-without-case"):
        audit("travas", epsilon=1, delta="1e-3", log=Variants.from_dict({}), white_box=white_box, processes=1)
