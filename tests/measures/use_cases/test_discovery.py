"""Models of a release, held against the original's own."""

from refusals import sentence

from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures.use_cases import Assessment, judge

ORIGINAL = Variants.from_dict({("a", "b", "c", "d"): 50, ("a", "c", "b", "d"): 40, ("a", "e", "d"): 30})


def judged(released: Variants) -> Assessment:
    return judge(Pair(ORIGINAL, released), ["discovery"])["discovery"]


def test_the_original_itself_is_good_for_discovery() -> None:
    found = judged(ORIGINAL)
    assert found.grade == "good"
    fitness, precision = found.aspects["fitness"], found.aspects["precision"]
    assert (fitness.value, fitness.original, fitness.share) == (1.0, 1.0, 1.0)
    assert precision.value == precision.original == 1.0


def test_one_frequent_variant_is_more_precise_than_it_fits() -> None:
    """The worse of fitness and precision decides, which an F-score would hide."""
    found = judged(Variants.from_dict({("a", "b", "c", "d"): 120}))
    fitness, precision = found.aspects["fitness"], found.aspects["precision"]
    assert fitness.share is not None and precision.share is not None
    assert fitness.share < 0.9 < precision.share
    assert found.chief is fitness
    assert found.grade == "limited" and round(100 * fitness.share) == 87
    kept = sentence("use-case-kept-share", number=fitness.aspect.heading, share="87 %")
    assert found.verdict == sentence("use-case-limited", use_case=found.use_case.title, kept=kept)


def test_a_model_of_anything_fits_and_is_not_precise() -> None:
    anything = Variants.from_sequences([[x, y, z] for x in "abcde" for y in "abcde" for z in "abcde"])
    found = judged(anything)
    assert found.aspects["fitness"].value == 1.0
    assert found.chief is found.aspects["precision"]
    assert found.grade == "poor"


def test_a_release_without_events_says_why_there_is_no_model() -> None:
    found = judged(Variants.from_dict({(): 12}))
    assert found.grade == "not judged"
    assert [reason.code for reason in found.reasons] == ["model-log-without-events"]


def test_a_release_that_lost_most_activities_is_not_good_for_discovery() -> None:
    """Replay skips activities that the model lacks, so fitness alone would mislead."""
    common = Variants.from_dict({("a", "d"): 10, **{("a", f"x{i}", f"y{i}", "d"): 10 for i in range(9)}})
    found = judge(Pair(common, Variants.from_dict({("a", "d"): 100})), ["discovery"])["discovery"]
    assert found.aspects["fitness"].value == 1.0
    assert found.aspects["kept"].value == 200 / 380
    assert found.grade == "poor" and found.chief is found.aspects["kept"]
