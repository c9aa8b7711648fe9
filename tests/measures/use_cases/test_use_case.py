"""Use cases are judged by four sides of the same logs, a share and a verdict."""

from collections.abc import Mapping

import numpy as np
import pytest
from refusals import sentence

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures.use_cases import Assessment, Metric, UseCase, UseCaseOptions, judge
from veilog.measures.use_cases.sides import Splits, split

ORIGINAL = Variants.from_dict({("a", "b"): 60, ("a", "c"): 30, ("b",): 10})
SHARE = Metric("found", "found", "kinds of cases that are found", "higher", chief=True)
DISTANCE = Metric("off", "off", "share of cases elsewhere", "lower", chief=True)


def judged(use_case: UseCase, released: Variants, original: Variants = ORIGINAL) -> Assessment:
    return use_case.judged(Splits(Pair(original, released)), UseCaseOptions())


def found(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
    assert isinstance(used, Variants)
    assert isinstance(on, Variants)
    return {"found": len(used.to_dict().keys() & on.to_dict().keys()) / len(on)}


def off(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
    assert isinstance(used, Variants)
    assert isinstance(on, Variants)
    a, b = ({k: n / log.cases for k, n in log.to_dict().items()} for log in (used, on))
    return {"off": sum(abs(a.get(k, 0) - b.get(k, 0)) for k in a | b) / 2}


def test_a_score_is_held_against_the_original_itself() -> None:
    result = judged(UseCase("kinds", "kinds", (SHARE,), found), Variants.from_dict({("a", "b"): 7, ("b",): 1}))
    one = result.aspects["found"]
    assert (one.value, one.original, one.unprotected) == (2 / 3, 1.0, 1.0)
    assert one.share == pytest.approx(2 / 3)
    assert result.grade == "poor"
    kept = sentence("use-case-kept-share", number="found", share="67 %")
    assert result.verdict == sentence("use-case-poor", use_case="kinds", kept=kept)


def test_a_distance_is_held_against_that_of_two_halves() -> None:
    use_case = UseCase("shares", "shares", (DISTANCE,), off)
    one = judged(use_case, Variants.from_dict({("b",): 5})).aspects["off"]
    assert one.value == pytest.approx(0.9)
    assert one.original == 0.0
    assert one.unprotected == pytest.approx(0.9 - 2 / 3 + (1 / 3 - 0.3), abs=0.05)
    assert one.sample is not None
    assert 0 < one.sample < 0.25
    assert one.share == pytest.approx(one.sample / 0.9)
    same = judged(use_case, ORIGINAL)
    assert same.grade == "good"
    kept = sentence("use-case-kept-as-near", number="off")
    assert same.verdict == sentence("use-case-good", use_case="shares", kept=kept)


def test_halves_have_every_case_once() -> None:
    first, second = split(ORIGINAL, 0.5)
    assert isinstance(first, Variants)
    assert isinstance(second, Variants)
    assert first.cases == second.cases == 50
    both: dict[tuple[str, ...], int] = first.to_dict()
    for sequence, count in second.to_dict().items():
        both[sequence] = both.get(sequence, 0) + count
    assert both == ORIGINAL.to_dict()


def test_what_is_judged_on_held_out_cases_never_sees_them() -> None:
    log = Variants.from_sequences([[str(i)] for i in range(100)])
    seen: list[tuple[Variants, Variants]] = []

    def remembered(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
        assert isinstance(used, Variants)
        assert isinstance(on, Variants)
        seen.append((used, on))
        return {"found": 1.0}

    judged(UseCase("kinds", "kinds", (SHARE,), remembered, held_out=True), ORIGINAL, log)
    value, *others = seen
    assert value[0] == ORIGINAL
    assert all(on == value[1] and on.cases == 30 for _, on in others)
    assert all(not used.to_dict().keys() & on.to_dict().keys() for used, on in others)
    assert sorted(used.cases for used, _ in others) == [35, 70, 70]


def test_what_cannot_be_judged_says_why() -> None:
    def never(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
        raise ParameterError("no-time-known")

    result = judged(UseCase("delays", "delays", (DISTANCE,), never), ORIGINAL)
    assert result.grade == "not judged"
    assert [reason.code for reason in result.reasons] == ["no-time-known"]
    assert result.verdict == sentence("use-case-not-judged", use_case="delays", reason=result.reason)
    tiny = judged(UseCase("shares", "shares", (DISTANCE,), off), ORIGINAL, Variants.from_dict({("a",): 1}))
    assert "too few" in tiny.verdict


def test_the_leak_line_has_every_variant_once() -> None:
    seen = Splits(Pair(ORIGINAL, ORIGINAL)).of("unprotected", "variants", held_out=False)[0]
    assert isinstance(seen, Variants)
    assert np.array_equal(seen.counts, [1, 1, 1])


def test_an_error_of_something_learnt_is_held_against_the_original_itself() -> None:
    aspect = Metric("missed", "missed time", "hours", "lower", chief=True, against="original")

    def missed(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
        assert isinstance(used, Variants)
        return {"missed": 5.0 if used.cases == ORIGINAL.cases else 4.0 if used.cases == 7 else 8.0}

    use_case = UseCase("delays", "delays", (aspect,), missed)
    half_as_good = judged(use_case, Variants.from_dict({("a",): 3}))
    one = half_as_good.aspects["missed"]
    assert (one.value, one.original, one.sample, one.unprotected) == (8.0, 5.0, 8.0, 8.0)
    assert one.share == 5 / 8
    kept = sentence("use-case-kept-error", number="missed time", times=1.6)
    assert half_as_good.verdict == sentence("use-case-poor", use_case="delays", kept=kept)
    better = judged(use_case, Variants.from_dict({("a",): 7}))
    assert better.aspects["missed"].share == 1.0
    kept = sentence("use-case-kept-error", number="missed time", times=1.0)
    assert better.verdict == sentence("use-case-good", use_case="delays", kept=kept)


def test_a_negligible_distance_is_as_near_as_another_sample() -> None:
    halves = {"off": 0.001}

    def little(used: object, on: object, asked: UseCaseOptions) -> Mapping[str, float]:
        assert isinstance(used, Variants)
        return halves if used.cases != 7 else {"off": 0.02}

    released = Variants.from_dict({("a",): 7})
    for negligible, share in ((0.0, 0.05), (0.01, 0.5), (0.02, 1.0)):
        aspect = Metric("off", "off", "share of cases elsewhere", "lower", chief=True, negligible=negligible)
        one = judged(UseCase("shares", "shares", (aspect,), little), released).aspects["off"]
        assert (one.share, one.sample) == (pytest.approx(share), 0.001)


def test_another_sample_can_be_the_mean_of_several_halvings() -> None:
    single, several = (
        [
            judged(UseCase("shares", "shares", (DISTANCE,), off, halvings=number), ORIGINAL).aspects["off"].sample
            for number in range(1, 5)
        ],
        [off(*split(ORIGINAL, 0.5, seed), UseCaseOptions())["off"] for seed in range(1, 5)],
    )
    assert single == pytest.approx([np.mean(several[:number]) for number in range(1, 5)])
    assert len(set(several)) > 1


def test_whole_logs_are_taken_where_both_are_there() -> None:
    log = hospital(20, seed=1)
    for original, released, kind in (
        (log, log, EventLog),
        (log, log.variants, Variants),
        (log.variants, log, Variants),
    ):
        for side in ("value", "original", "sample", "unprotected"):
            used, on = Splits(Pair(original, released)).of(side, "either", held_out=True)
            assert isinstance(used, kind)
            assert isinstance(on, kind)


@pytest.mark.parametrize(("aspect", "sides"), [(SHARE, "original"), (DISTANCE, "another sample")])
def test_where_the_verdict_alone_is_wanted_no_more_is_found_than_it_goes_by(aspect: Metric, sides: str) -> None:
    use_case = UseCase("kinds", "kinds", (aspect,), found if aspect is SHARE else off)
    said: list[str] = []
    asked = UseCaseOptions(chief_only=True, progress=lambda text, fraction: said.append(text))
    pair = Pair(ORIGINAL, Variants.from_dict({("a", "b"): 7, ("b",): 1}))
    quick, whole = use_case.judged(Splits(pair), asked).chief, use_case.judged(Splits(pair), UseCaseOptions()).chief
    assert quick is not None and whole is not None
    assert (quick.value, quick.share, quick.grade) == (whole.value, whole.share, whole.grade)
    assert quick.unprotected is None and whole.unprotected is not None
    assert len(said) == 2 and sides in said[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prediction", "discovery"])
def test_use_cases_of_the_package_find_the_same_at_a_glance(name: str) -> None:
    pair = Pair(hospital(120, seed=1).variants, hospital(120, seed=2).variants)
    quick, whole = (judge(pair, [name], UseCaseOptions(chief_only=one))[name] for one in (True, False))
    assert quick.chief is not None and whole.chief is not None
    assert (quick.chief.aspect.name, quick.chief.share) == (whole.chief.aspect.name, whole.chief.share)
    known = {key for key, one in quick.aspects.items() if one.value is not None}
    assert known == {aspect.name for aspect in quick.use_case.aspects if aspect.chief}
