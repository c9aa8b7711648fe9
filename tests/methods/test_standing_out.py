"""Remarks of methods but evolve: rare parts, errors of numbers, parts of noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import openly
import pytest

from veilog import Domain, Variants
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message, as_message
from veilog.methods.method import NONE_ADVISED, Request
from veilog.methods.thresholds import remark_cases, remark_made_by_noise, remark_rare_variants, within
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import KTruncatedGeometric, Laplace

LOG = hospital(400, seed=3).variants
DECLARED = Domain(LOG.labels, 60)
SOURCE = noise.seeded(5)
RUNS = 20_000


def asked(epsilon: Fraction = Fraction(1)) -> tuple[Request, list[Message]]:
    """Return a request, and the list of its remarks."""
    said: list[Message] = []

    def heard(remark: str | Message) -> None:
        said.append(as_message(remark))

    return Request(epsilon, Fraction(0), False, lambda text, part: None, lambda a, b: 0.0, heard), said


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10)])
@pytest.mark.parametrize("more", [0, 3, 40, 500])
def test_variants_of_so_many_cases_are_found_in_half_of_the_runs_and_their_counts_are_within(
    epsilon: Fraction, more: int
) -> None:
    request, said = asked()
    added = KTruncatedGeometric.of(epsilon, Fraction(1, 10_000))
    remark_rare_variants(request, added, counted=True)
    least, off = said[0].values["least"], said[0].values["off"]
    drawn = added.draw(RUNS, SOURCE)
    found = least + more + drawn > added.k
    assert found.mean() > 0.49
    assert (np.abs(drawn[found]) <= off).mean() > 0.945
    assert (least - max(2, least // 4) + drawn > added.k).mean() < 0.45


@pytest.mark.parametrize("bins", [1, 12])
def test_the_number_of_cases_is_within_what_is_said_in_95_of_100_runs(bins: int) -> None:
    request, said = asked()
    added = Laplace(Fraction(20))
    remark_cases(request, 700, added.variance * bins, 30)
    cases, off = said[0].values["cases"], said[0].values["off"]
    drawn = added.draw(RUNS * bins, SOURCE).reshape(RUNS, bins).sum(axis=1)
    assert cases == 700 and 0.945 < (np.abs(drawn) <= off).mean() < 0.98


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7), Fraction(300)])
def test_a_number_with_noise_is_within_what_is_said_in_95_of_100_runs(scale: Fraction) -> None:
    added = Laplace(scale)
    assert 0.945 < (np.abs(added.draw(RUNS, SOURCE)) <= within(added)).mean() <= 1.0


def test_where_what_stands_out_is_half_of_the_cases_an_epsilon_is_named_at_which_a_tenth_does() -> None:
    request, said = asked(Fraction(1, 10))
    for threshold in (349, 350, 3_500):
        remark_cases(request, 700, 50.0, threshold)
    would_do = Message("epsilon-would-do", epsilon="0.5")
    assert [one.values.get("advised") for one in said] == [None, would_do, NONE_ADVISED]


@pytest.mark.parametrize("count", [0, 3, 50])
def test_noise_makes_no_more_than_is_said(count: int) -> None:
    request, said = asked()
    added = Laplace(Fraction(4))
    bins = 3 * RUNS
    made = np.maximum(count + added.draw(bins, SOURCE), 0).sum() - count * bins
    remark_made_by_noise(request, added, bins, 150_000)
    most = said[0].values["made"]
    assert made < 1.03 * most and (count or made > 0.97 * most)
    remark_made_by_noise(request, added, bins, 1_500_000)
    assert len(said) == 1


SAID = {
    "travas": ["variants-rare-dropped-others-noisy"],
    "utravas": ["variants-rare-dropped"],
    "laplace": ["traces-end-at-rare", "cases-noisy-number"],
    "sacofa": ["traces-end-at-rare", "cases-noisy-number"],
    "df-laplace": ["steps-rare-like-noise", "cases-noisy-number"],
    "sapa": ["steps-rare-like-noise", "cases-noisy-number"],
    "dpim": ["steps-rare-like-noise", "cases-noisy-number"],
}


@pytest.mark.slow
@pytest.mark.parametrize("method", SAID)
def test_a_release_says_first_what_is_too_rare_to_be_in_it(method: str) -> None:
    delta = "1e-4" if method in ("travas", "utravas") else 0
    for seed in range(3):
        remarks = openly.release(LOG, method, epsilon=1, delta=delta, domain=DECLARED, seed=seed).remarks
        codes = [remark.code for remark in remarks]
        assert all(code.startswith(said) for code, said in zip(codes, SAID[method], strict=False)), codes
        assert len(codes) >= len(SAID[method])
        assert len(set(codes) - {"dpim-process-tree", "traces-cut-at-length", "release-cases-without-event"}) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["laplace", "sacofa", "df-laplace", "dpim"])
def test_the_number_of_cases_that_is_said_is_near_that_of_the_log(method: str) -> None:
    near = 0
    for seed in range(20):
        remarks = openly.release(LOG, method, epsilon=1, domain=DECLARED, seed=seed).remarks
        (said,) = (remark.values for remark in remarks if remark.code.startswith("cases-noisy-number"))
        near += abs(said["cases"] - LOG.cases) <= said["off"]
    assert near >= 17


def test_what_becomes_of_rare_traces_is_what_rest_says() -> None:
    said = {
        rest: openly.release(LOG, "laplace", epsilon=1, domain=DECLARED, seed=1, rest=rest).remarks[0]
        for rest in ("stop", "drop", "share")
    }
    codes = ["traces-end-at-rare", "variants-rare-dropped-with-cases", "variants-rare-counted-elsewhere"]
    assert [said[rest].code for rest in ("stop", "drop", "share")] == codes


def test_a_tree_that_is_cut_says_so_and_one_that_is_deep_enough_does_not() -> None:
    short = Variants.from_dict({("a", "b"): 300, ("a",): 200})
    for depth, cut in ((1, True), (3, False)):
        said = openly.release(short, "laplace", epsilon=2, depth=depth, seed=1).remarks
        assert any(one.code == "no-trace-beyond-one-event" for one in said) is cut


def test_a_tree_as_published_says_how_much_of_it_noise_made() -> None:
    found = openly.release(LOG, "laplace", epsilon=1, domain=DECLARED, depth=6, as_published=True, seed=1)
    (said,) = (one.values for one in found.remarks if one.code == "noise-made-cases")
    made, cases = said["made"], said["released"]
    assert cases == found.variants.cases and cases / 10 <= made <= cases
    pairs = openly.release(LOG, "df-laplace", epsilon="0.1", domain=DECLARED, as_published=True, seed=1)
    assert "noise-made-steps" in [one.code for one in pairs.remarks]


def test_an_empty_release_says_so_first_and_advises_what_its_method_takes() -> None:
    rare = Variants.from_dict({(a, b): 1 for a in "abcdef" for b in "abcdef"})
    said = openly.release(rare, "travas", epsilon="0.1", delta="1e-6", seed=0).remarks
    assert said[0].code == "nothing-survived-both-small"
    assert said[1].code == "variants-rare-dropped-others-noisy"
    said = openly.release(rare, "df-laplace", epsilon="0.1", seed=0).remarks
    assert said[0].code == "nothing-survived-epsilon-small"


def test_what_samples_have_in_common_is_said_once() -> None:
    log = hospital(200, seed=1)
    wanted = {"query": "travas", "samples": 3, "epsilon": 1, "delta": "1e-4", "seed": 1}
    said = openly.release(log, "libra", times_share=0, **wanted).remarks
    codes = [one.code for one in said]
    assert codes.count("variants-rare-dropped-others-noisy") == 1 and "samples-of-query-with-delta" in codes[:2]
