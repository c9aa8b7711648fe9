"""evolve with a delta: queries, charges, and the real variants that it releases."""

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import openly
import pytest
from charged import failure
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import variants_only
from veilog.logs.variants import Sequences, Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.chain import Shortened, relation_features
from veilog.methods.evolve.constants import DEFAULTS, Constants
from veilog.methods.evolve.plan import EvolvePlan, gaussian_pays
from veilog.methods.evolve.real_variants import RealVariants
from veilog.methods.method import Request
from veilog.privacy.case_functions import triples_of
from veilog.privacy.contributions import Features, contributions, noise_of_sums
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import GaussianRounds

LOG = Variants.from_dict(
    {("register", "check", "pay"): 400, ("register", "check", "check", "pay"): 150, ("register", "reject"): 250}
)
MANY = variants_only(2000, 8, 6.0)
"""Log in which hardly a variant occurs twice."""


def asked(release: veilog.Release) -> list[str]:
    return [charge.question for charge in release.guarantee.charges]


def found_by(log: Variants, **wanted: object) -> tuple[veilog.Release, dict[tuple[str, ...], int]]:
    """Return a release, and its answer about frequent variants."""
    answers = []
    question = Curator.partitions

    def partitions(*given: object, **named: object) -> Variants:
        answers.append(question(*given, **named))
        return answers[-1]

    with patch.object(Curator, "partitions", partitions):
        release = openly.release(log, "evolve", **wanted)
    (answer,) = answers
    return release, answer.to_dict()


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("epsilon", ["0.001", "1", "1/3", "30"])
@pytest.mark.parametrize("share", [0.2, 0.07, 1e-5, 0.9])
def test_with_a_delta_epsilon_and_delta_are_exactly_what_was_asked(epsilon: str, share: float) -> None:
    released = openly.release(LOG, "evolve", epsilon=Fraction(epsilon), delta="1e-6", real_share=share)
    charges = released.guarantee.charges
    assert sum(charge.epsilon for charge in charges) == Fraction(epsilon)
    asked = [(charge.epsilon, charge.delta) for charge in charges if charge.delta]
    part = Fraction(epsilon) * Fraction(str(share))
    assert asked == [(part, failure(part, "1e-6"))]
    assert released.guarantee.proven
    assert (released.guarantee.delta, released.guarantee.nominal_delta) == (1e-6, 1e-6)


@pytest.mark.slow
def test_without_a_delta_the_share_for_real_variants_changes_nothing() -> None:
    first, other = (openly.release(LOG, "evolve", epsilon=1, seed=4, real_share=share) for share in (0.2, 0.9))
    assert first.variants == other.variants
    assert first.guarantee.charges == other.guarantee.charges
    assert first.guarantee.nominal_delta is None


def test_where_no_share_finds_real_variants_a_delta_is_refused() -> None:
    with refused(ParameterError, "method-delta-not-needed"):
        openly.release(LOG, "evolve", epsilon=1, delta="1e-6", real_share=0)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("epsilon", ["0.00002", "0.001", "0.1", "1", "1/3", "30"])
@pytest.mark.parametrize("log", [LOG, MANY, variants_only(300, 70, 8.0)], ids=["few variants", "many", "wide"])
def test_by_default_too_the_charges_add_up_to_epsilon_and_delta_exactly(log: Variants, epsilon: str) -> None:
    charges = openly.release(log, "evolve", epsilon=Fraction(epsilon), delta="1e-6").guarantee.charges
    assert sum(charge.epsilon for charge in charges) == Fraction(epsilon)
    assert all(charge.epsilon > 0 for charge in charges)
    charged = {charge.question: charge for charge in charges if charge.delta}
    assert set(charged) <= {"partitions", "sums"} and len(charged) == sum(charge.delta > 0 for charge in charges)
    relations, variants = charged.get("sums"), charged.get("partitions")
    kept = relations.delta if relations else Fraction(0)
    assert kept in (0, Fraction("5e-7"), Fraction("1e-6"))
    if variants:
        assert variants.delta in (failure(variants.epsilon, "1e-6"), failure(variants.epsilon, "5e-7"))
        assert kept + variants.delta <= Fraction("1e-6")
    else:
        assert kept == Fraction("1e-6")


@pytest.mark.nightly
def test_relations_have_half_of_delta_and_gaussian_noise_where_variants_may_be_found_too() -> None:
    charges = openly.release(MANY, "evolve", epsilon=1, delta="1e-4", seed=1).guarantee.charges
    found, relations = (charge for charge in charges if charge.delta)
    assert (found.question, relations.question) == ("partitions", "sums")
    assert relations.delta == Fraction("5e-5") and found.delta == failure(found.epsilon, "5e-5")
    assert isinstance(relations.mechanism, GaussianRounds)
    assert relations.plain().sensitivity == f"{2**DEFAULTS.norm_bits} (L2, clipped)"


@pytest.mark.slow
def test_relations_have_all_of_delta_where_no_variant_could_be_found() -> None:
    """Relations get all of delta where no variant can hold the 900 cases to be found."""
    with patch.object(Curator, "count", lambda self, epsilon: MANY.cases):
        release = openly.release(MANY, "evolve", epsilon="0.05", delta="1e-6", seed=1)
    charged = [(charge.question, charge.delta) for charge in release.guarantee.charges]
    assert charged == [("concentration", 0), ("sums", Fraction("1e-6")), ("histogram", 0)]
    assert "evolve-real-not-asked" in [remark.code for remark in release.remarks]


@pytest.mark.slow
def test_relations_of_a_case_have_an_l2_norm_that_is_hardly_below_1_and_never_above() -> None:
    """Relations of a case have an L2 norm close to 1 and never above, in integers."""
    asked_for = []

    def sums(self: Curator, features: Features, size: int, bound: int, epsilon: Fraction, **named: Any) -> np.ndarray:
        asked_for.append((features, bound, named["resolution"]))
        return np.full(size, 1 << 20)

    with patch.object(Curator, "sums", sums):
        openly.release(MANY, "evolve", epsilon=1, delta="1e-4", seed=1)
    features, bound, resolution = asked_for[0]
    rng = np.random.default_rng(5)
    cases = [tuple(rng.choice(MANY.labels, size=n).tolist()) for n in (0, 1, 2, 3, 10, 59, 60, 61, 200)]
    cases += [(MANY.labels[0],) * n for n in (1, 2, 60, 400)]
    log = Variants.from_sequences(cases)
    triples = triples_of(features, log.sequences, 10**4, 2**30, check=True)
    rows, _, values = contributions(triples, len(log), bound, resolution, "L2")
    norms = np.sqrt(np.bincount(rows, weights=values.astype(float) ** 2, minlength=len(log)))
    assert all(sum(int(v) ** 2 for v in values[rows == i]) <= (bound * resolution) ** 2 for i in range(len(log)))
    assert norms.min() > 0.99 * bound * resolution


@pytest.mark.parametrize("longest", [3, 20, 60, 1000])
@pytest.mark.parametrize("epsilon", ["0.002", "0.05", "0.6", "3"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-5", "1e-12", "1e-40"])
def test_gaussian_noise_pays_where_its_own_variance_says_so(longest: int, epsilon: str, delta: str) -> None:
    """Gaussian noise is chosen where its mean noise over signal is below Laplace's."""
    e, failure = Fraction(epsilon), Fraction(delta)
    wide, _ = noise_of_sums(5, 2**20, e, Fraction(0))
    (narrow,) = noise_of_sums(1, 2**20, e, failure)[0].noises
    lengths = np.geomspace(2, longest + 1, 101)
    laplace = np.log(wide.variance**0.5 / np.minimum(1, 5 / lengths))
    gaussian = np.log(narrow.variance**0.5 * np.sqrt(lengths))
    assert gaussian_pays(e, failure, longest, 5) == (gaussian.mean() < laplace.mean())


def test_gaussian_noise_pays_for_long_cases_and_not_where_it_cannot_be_had() -> None:
    assert gaussian_pays(Fraction(1, 10), Fraction("1e-4"), 60, 5)
    assert not gaussian_pays(Fraction(1, 10), Fraction("1e-40"), 60, 5)
    assert not gaussian_pays(Fraction(1, 1001), Fraction("1e-4"), 60, 5), "no less is composed in the kernel"
    assert not gaussian_pays(Fraction(1, 10), Fraction(0), 60, 5)


def test_the_smaller_a_log_of_few_variants_the_less_goes_to_votes() -> None:
    def votes(cases: int) -> float:
        plan = EvolvePlan(DEFAULTS, Fraction(1), 10, Fraction(1), [(cases, 1.0)], concentrated=True)
        share, delta = plan.real_share(Fraction("1e-4"), 60)
        assert delta == Fraction("1e-4")
        return 1 - share

    shares = [votes(cases) for cases in (20, 140, 1400, 15_000, 150_000)]
    assert shares[:2] == pytest.approx([0.02, 0.02])
    assert shares[2] == max(shares) and shares[2] < 0.2
    assert shares[3] * 15_000 > shares[2] * 1400, "a smaller share of more, and yet more votes"


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("share", [None, 0.2])
@pytest.mark.parametrize("log", [LOG, MANY], ids=["few variants", "many"])
def test_real_variants_that_are_found_are_all_released_and_it_says_so(log: Variants, share: float | None) -> None:
    release, answer = found_by(log, epsilon=1, delta="1e-2", seed=2, real_share=share)
    counts = release.variants.to_dict()
    assert answer and set(answer) <= set(log.to_dict())
    assert set(answer) <= set(counts)
    text = " ".join(map(str, release.remarks))
    words = re.search(r"(\d+) of the released variants are certain to be real, for (\d+) cases", text)
    assert words
    assert (int(words[1]), int(words[2])) == (len(answer), sum(counts[sequence] for sequence in answer))
    threshold = re.search(r"All released variants of more than (\d+) cases", text)
    if threshold:
        assert {v for v, count in counts.items() if count > int(threshold[1])} <= set(answer)


@pytest.mark.slow
def test_a_log_without_frequent_variants_is_released_without_real_ones() -> None:
    log = Variants.from_dict({("a", "b"): 3, ("a",): 2})
    release = openly.release(log, "evolve", epsilon=1, delta="1e-6", seed=1)
    assert "evolve-no-variant-certain" in [remark.code for remark in release.remarks]
    assert release.variants.cases > 0
    asked_for = max(charge.delta for charge in release.guarantee.charges)
    assert Fraction("5e-7") < asked_for <= Fraction("1e-6"), "asked and charged"


@pytest.mark.slow
def test_where_few_variants_hold_most_cases_no_relations_are_asked() -> None:
    release = openly.release(LOG, "evolve", epsilon=1, delta="1e-4", seed=1)
    assert asked(release) == ["count", "concentration", "partitions", "histogram", "histogram"][: len(asked(release))]
    assert "evolve-few-variants-dominate" in [remark.code for remark in release.remarks]


@pytest.mark.nightly
def test_where_they_do_not_relations_are_asked() -> None:
    release = openly.release(MANY, "evolve", epsilon=1, delta="1e-4", seed=1)
    assert asked(release)[:4] == ["count", "concentration", "partitions", "sums"]
    assert "starts from" not in " ".join(map(str, release.remarks))


@pytest.mark.nightly
def test_a_given_share_asks_for_no_concentration_and_coverage_alone_decides() -> None:
    few, many = (openly.release(log, "evolve", epsilon=1, delta="1e-4", seed=1, real_share=0.3) for log in (LOG, MANY))
    assert asked(few)[:3] == ["partitions", "count", "histogram"]
    assert asked(many)[:3] == ["partitions", "count", "sums"]


@pytest.mark.slow
def test_a_share_that_cannot_find_anything_is_kept_small() -> None:
    """A tiny delta has no use for Gaussian noise, but variants are asked all the same."""
    with patch.object(Curator, "count", lambda self, epsilon: MANY.cases):
        release = openly.release(MANY, "evolve", epsilon="0.05", delta="1e-40", seed=1)
    (found,) = [charge for charge in release.guarantee.charges if charge.question == "partitions"]
    assert float(found.epsilon) / 0.05 == pytest.approx(0.02, abs=0.003)


@pytest.mark.slow
def test_a_wide_log_of_few_variants_needs_no_frequent_activities() -> None:
    """Only the four activities of two frequent variants are released, of 202."""
    rare = {tuple(f"x{j}" for j in range(i, i + 3)): 1 for i in range(196)}
    log = Variants.from_dict({("a", "b", "c"): 3000, ("a", "d"): 1500, **rare})
    release = openly.release(log, "evolve", epsilon=1, delta="1e-4", seed=3)
    assert "sums" not in asked(release)
    assert set(release.variants.labels) == {"a", "b", "c", "d"}
    (remark,) = (remark for remark in release.remarks if remark.code == "evolve-few-variants-dominate")
    assert (remark.values["size"], remark.values["activities"]) == (4, 202)
    assert relative_log_similarity(log, release.variants).value > 0.9


@pytest.mark.nightly
def test_real_variants_that_are_too_long_to_imagine_are_released_all_the_same() -> None:
    log = Variants.from_dict({("a", "b") * 150: 900, ("a",): 300})
    for longest in (1, 60):
        release, answer = found_by(log, epsilon=2, delta="1e-4", seed=1, max_length=longest)
        assert set(answer) == set(log.to_dict()) <= set(release.variants.to_dict())
    release, answer = found_by(Variants.from_dict({("a", "b") * 150: 900}), epsilon=2, delta="1e-4", seed=1)
    assert len(answer) == 1, "nothing that was found can be imagined"
    assert "sums" in asked(release)


@pytest.mark.slow
def test_empty_cases_are_a_variant_like_others() -> None:
    log = Variants.from_dict({(): 500, ("a",): 300})
    release, answer = found_by(log, epsilon=2, delta="1e-4", seed=1)
    assert set(answer) == set(log.to_dict()) <= set(release.variants.to_dict())


# Only real variants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "expected"), [(None, Fraction(4, 5)), (0.3, Fraction(3, 10))])
def test_only_real_variants_cost_two_questions(share: float | None, expected: Fraction) -> None:
    release, answer = found_by(LOG, epsilon=1, delta="1e-4", only_real=True, real_share=share)
    assert [(c.question, c.epsilon) for c in release.guarantee.charges] == [
        ("partitions", expected),
        ("histogram", 1 - expected),
    ]
    partitions, histogram = (c.delta for c in release.guarantee.charges)
    assert Fraction("5e-5") < partitions <= Fraction("1e-4") and histogram == 0
    assert release.guarantee.proven
    assert set(release.variants.to_dict()) == set(answer)


def test_rare_cases_stand_where_they_resemble_a_real_variant_most() -> None:
    """A hundred rare cases count for the second variant, which they resemble most."""
    rare = {("x", "y", "z", f"r{i}"): 1 for i in range(100)}
    log = Variants.from_dict({("a", "b"): 600, ("x", "y", "z"): 300, **rare})
    counts = [
        openly.release(log, method, epsilon=3, delta="1e-4", seed=1, **more).variants.to_dict()
        for method, more in (("evolve", {"only_real": True}), ("travas", {}))
    ]
    assert [set(found) for found in counts] == [{("a", "b"), ("x", "y", "z")}] * 2
    assert counts[0]["x", "y", "z"] == pytest.approx(400, abs=25)
    assert counts[1]["x", "y", "z"] == pytest.approx(300, abs=25)
    assert sum(counts[0].values()) == pytest.approx(1000, abs=25)


def test_of_very_many_real_variants_the_most_frequent_alone_stand_for_cases_that_have_none_of_them() -> None:
    rare = {("x", "y", f"r{i}"): 1 for i in range(100)}
    log = Variants.from_dict({("a", "b"): 600, ("x", "y"): 300, **rare})
    request = Request(Fraction(5), Fraction("1e-3"), False, lambda text, done: None, lambda a, b: 0.0)
    for most, expected in ((1000, (600, 400)), (1, (700, 300))):
        curator = Curator(log, domain=ALL_FROM_LOG, randomness=noise.seeded(1))
        counts = evolve(curator, request, EvolveSettings(only_real=True), Constants(most_prototypes=most)).to_dict()
        assert (counts["a", "b"], counts["x", "y"]) == pytest.approx(expected, abs=20)


def test_nothing_real_found_is_nothing_released() -> None:
    release = openly.release(MANY, "evolve", epsilon="0.01", delta="1e-6", only_real=True, seed=1)
    assert release.variants.cases == 0
    assert "evolve-nothing-certain" in [remark.code for remark in release.remarks]
    assert [charge.question for charge in release.guarantee.charges] == ["partitions"]


@pytest.mark.parametrize("wrong", [{}, {"delta": "1e-4", "real_share": 0}])
def test_only_real_variants_need_a_delta_and_a_share(wrong: dict[str, object]) -> None:
    with refused(ParameterError, "evolve-real-without-share", "method-delta-not-needed"):
        openly.release(LOG, "evolve", epsilon=1, only_real=True, **wrong)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("name", ["sepsis", "bpic2013_incidents", "unrineweginfectie"])
def test_only_real_variants_are_nearer_to_the_log_than_those_of_travas(logs: Path, name: str) -> None:
    log = veilog.read(logs / f"{name}.xes.gz").variants
    ours, theirs = (
        np.mean(
            [
                relative_log_similarity(
                    log, openly.release(log, method, epsilon=1, delta="1e-4", seed=seed, **more).variants
                ).value
                for seed in range(3)
            ]
        )
        for method, more in (("evolve", {"only_real": True}), ("travas", {}))
    )
    assert ours > theirs


def test_known_variants_keep_what_fits_the_most_frequent_first() -> None:
    real = Variants.from_dict({("a", "b"): 5, ("b", "c"): 9, ("a", "b", "a", "b"): 20, (): 3, ("b",): 7})
    codes = np.array([{"a": 0, "b": 1, "c": 2}[label] for label in real.labels])
    states = np.array([1, 0, -1], dtype=np.int32)  # c is left out
    known = RealVariants.of(real, codes, Shortened(states, 2, 3))
    assert known.cases.tolist() == [7, 5]
    assert [row[:n].tolist() for row, n in zip(known.traces.codes, known.traces.lengths, strict=True)] == [[0], [1, 0]]


def test_the_chain_of_known_variants_counts_as_the_question_for_relations_does() -> None:
    real = Variants.from_dict({("a", "b", "a"): 10, tuple("abababab"): 4})
    everything = Shortened(np.arange(2, dtype=np.int32), 2, 60)
    known = RealVariants.of(real, np.arange(2), everything)

    def clipped(sequences: Sequences) -> np.ndarray:
        owner, cell, ones = relation_features(sequences.codes, sequences.offsets, 2)
        weight = np.minimum(1, DEFAULTS.contribution / (sequences.lengths + 1)) * real.counts
        return np.bincount(cell, weights=ones * weight[owner], minlength=9).reshape(3, 3)

    chain = known.chain(2, DEFAULTS)
    assert chain.flow == pytest.approx(clipped(real.sequences))
    assert (chain.support == (chain.flow > 0)).all()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "epsilon", "at_least"),
    [("receipt", "1", 0.955), ("unrineweginfectie", "1", 0.979), ("unrineweginfectie", "0.1", 0.915)],
)
def test_with_a_delta_evolve_reaches_what_the_page_says(logs: Path, name: str, epsilon: str, at_least: float) -> None:
    """Similarities with a delta reach the page's figures (four seeds of twelve)."""
    log = veilog.read(logs / f"{name}.xes.gz").variants
    values = [
        relative_log_similarity(
            log, openly.release(log, "evolve", epsilon=epsilon, delta="1e-4", seed=seed).variants
        ).value
        for seed in range(4)
    ]
    assert np.mean(values) > at_least - 3 * 0.005 / 2


def test_the_number_of_cases_is_told_with_how_far_off_it_may_be() -> None:
    """One answer is off by its Laplace noise in 95 of 100 runs; more answers by less."""
    one = EvolvePlan(DEFAULTS, Fraction(1), 10, Fraction(1), [(200.0, 2 / 0.03**2)])
    assert one.within == pytest.approx(math.log(20) / 0.03)
    two = EvolvePlan(DEFAULTS, Fraction(1), 10, Fraction(1), [*one.estimates, (210.0, 50.0)])
    assert (two.within < one.within) == DEFAULTS.estimate_cases
