"""compare(): every measure a value or a reason, whatever the two logs are."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence

import veilog
from veilog.errors import MissingExtraError, ParameterError
from veilog.logs.eventlog import TIMESTAMP
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import Comparison, Found, compare, comparison
from veilog.measures.process_model import MEASURES
from veilog.messages import OwnerMessage
from veilog.privacy.partition import Partition

PROMISED = {
    "relative_log_similarity",
    "relative_log_similarity_exact",
    "absolute_log_difference",
    "absolute_log_difference_maximum",
    "dfg_frequency_emd",
    "dfg_time_emd",
    "case_durations",
    "active_cases",
    "size_ratio",
    "variants",
    "keep_real",
    "fitness",
    "precision",
    "f_score",
    "generalization",
    "coverage",
    "not_computed",
}
OPTIONAL = {*MEASURES, "normal_share"}

traces = st.lists(st.sampled_from("abcd"), max_size=5).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 4), max_size=5).map(Variants.from_dict)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers(v)]
    if isinstance(value, list | tuple):
        return [n for v in value for n in numbers(v)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.slow
def test_a_log_compared_with_itself_lost_nothing() -> None:
    events = hospital(60, seed=1)
    result = compare(events, events)
    assert result.relative_log_similarity == result.relative_log_similarity_exact == 1.0
    assert result.absolute_log_difference == result.absolute_log_difference_maximum == 0
    assert result.dfg_frequency_emd == result.dfg_time_emd == result.dfg_moved == result.length_error == 0.0
    assert result.size_ratio == result.keep_real == 1.0
    assert (result.variants.added, result.variants.lost) == (0, 0)
    assert result.case_durations is not None and result.case_durations.emd == 0.0
    assert result.active_cases is not None and result.active_cases.difference == 0.0
    assert (result.coverage.activities, result.coverage.directly_follows) == (1.0, 1.0)
    assert result.not_computed == {}


def test_the_worked_example_of_relative_log_similarity_through_compare() -> None:
    original = log(("abcd", 1), ("acbd", 1), ("aecd", 49), ("aebd", 49))
    result = compare(original, log(("abcd", 50), ("acbd", 50)))
    # Two times 0.49 * 0.25 is lost; the paper prints 0.24 and 0.76.
    assert result.relative_log_similarity == pytest.approx(0.755, abs=1e-12)
    assert (result.variants.common, result.variants.added, result.variants.lost) == (2, 0, 2)
    assert result.keep_real == 1.0


def test_false_positives_and_negatives_carry_their_cases() -> None:
    counts = compare(log(("ab", 5), ("ac", 3), ("ad", 2)), log(("ab", 7), ("x", 4), ("y", 1))).variants
    assert (counts.common, counts.added, counts.lost) == (1, 2, 2)
    assert (counts.added_cases, counts.lost_cases) == (5, 5)


@pytest.mark.nightly
@settings(max_examples=60)
@given(some_logs, some_logs)
def test_every_measure_has_a_finite_value_or_a_reason(a: Variants, b: Variants) -> None:
    result = compare(a, b)
    out = result.to_json()
    assert out.keys() >= PROMISED
    missing = {name for name, value in out.items() if value is None} - {"normal_share", "grade"}
    assert missing == set(result.not_computed)
    assert all(math.isfinite(n) for n in numbers(out))
    assert json.loads(json.dumps(out, allow_nan=False)) is not None
    assert result.verdict.endswith(".")


@pytest.mark.nightly
def test_a_release_is_not_taken_for_the_original() -> None:
    log = hospital(40, seed=1)
    release = veilog.release(log, "evolve", epsilon=1, activities="log", seed=1)
    with refused(ParameterError, "comparison-original-is-release"):
        compare(release, log, models=False)
    assert compare(release, release, models=False).released_cases == release.variants.cases  # two releases can be


def test_an_empty_release_is_said_to_be_empty() -> None:
    result = compare(log(("ab", 3)), Variants.from_dict({}))
    assert result.verdict == sentence("compared-release-empty")
    assert result.size_ratio == 0.0 and result.absolute_log_difference == 6
    assert {"relative_log_similarity", "keep_real", "dfg_moved"} <= set(result.not_computed)


def test_logs_without_a_common_activity_are_compared_and_it_is_said() -> None:
    result = compare(log(("ab", 3)), log(("xy", 3)))
    assert result.relative_log_similarity == 0.0 and result.dfg_moved == 1.0
    assert sentence("activities-not-shared") in result.verdict


@pytest.mark.slow
def test_artificial_or_missing_times_are_no_times() -> None:
    events = hospital(20, seed=1)
    mark = Attribute(ARTIFICIAL_TIMES, True, "boolean")
    ordered = replace(events, metadata=replace(events.metadata, attributes=(*events.metadata.attributes, mark)))
    for released, code in ((ordered, "durations-times-artificial"), (events.variants, "durations-of-variants")):
        result = compare(events, released)
        assert result.dfg_time_emd is result.case_durations is result.active_cases is None
        for name in ("dfg_time_emd", "case_durations", "active_cases"):
            assert result.not_computed[name].code == code
    unmarked = replace(mark, value=False)
    plain = replace(events, metadata=replace(events.metadata, attributes=(unmarked,)))
    assert compare(events, plain).dfg_time_emd == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "xes"])
def test_times_of_a_release_without_times_are_artificial_whatever_file_it_was_in(suffix: str, tmp_path: Path) -> None:
    original = hospital(60, seed=1)
    released = veilog.release(original, "evolve", epsilon=1, activities="log", seed=1)
    released.save(tmp_path / f"out.{suffix}")
    read = veilog.read(tmp_path / f"out.{suffix}")
    assert read.artificial_times and not original.artificial_times
    assert compare(original, read).not_computed["case_durations"].code == "durations-times-artificial"
    veilog.write(read, tmp_path / "again.csv", lossy=True)
    assert veilog.read(tmp_path / "again.csv").artificial_times
    # One event at another time, and they are not.
    times = read.events.column(TIMESTAMP).cast("int64").to_numpy().copy()
    times[-1] += 1
    moved = pa.array(times).cast(read.events.schema.field(TIMESTAMP).type)
    place = read.events.column_names.index(TIMESTAMP)
    events = read.events.set_column(place, TIMESTAMP, moved)
    assert not replace(read, events=events, metadata=Metadata()).artificial_times
    timed = veilog.release(original, "evolve", epsilon=1, activities="log", times=0.4, seed=1)
    timed.save(tmp_path / f"timed.{suffix}")
    assert not veilog.read(tmp_path / f"timed.{suffix}").artificial_times


def test_without_the_extras_the_reasons_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    result = compare(log(("ab", 3)), log(("ab", 2)), models="pm4py", anomalies=True)
    assert {name: getattr(result, name) for name in OPTIONAL} == dict.fromkeys(OPTIONAL)
    lacking = {name: result.not_computed[name] for name in (*MEASURES, "normal_share")}
    assert {each.code for each in lacking.values()} == {"extra-missing"}
    assert {name: each.extra for name, each in lacking.items() if isinstance(each, MissingExtraError)} == {
        **dict.fromkeys(MEASURES, "models"),
        "normal_share": "anomalies",
    }


def test_models_are_measured_without_any_extra_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    first, second = log(("ab", 3), ("b", 1)), log(("ab", 2))
    for result in (compare(first, second), compare(first, second, models=True)):
        assert result.fitness is not None and result.precision is not None and 0 < result.fitness < 1
    assert not set(MEASURES) & compare(first, second, models=False).results.keys()


def test_without_attacks_no_one_is_attacked() -> None:
    original, released = (hospital(60, seed=seed).variants for seed in (1, 2))
    whole, less = compare(original, released), compare(original, released, attacks=False)
    assert set(whole.results) - set(less.results) == set(comparison.ATTACKS)
    assert less.attacks == (None, None, None)
    one = compare(original, released, attacks=("linkability",))
    assert [found is not None for found in one.attacks] == [False, True, False]
    assert less.relative_log_similarity == whole.relative_log_similarity


def test_progress_is_told() -> None:
    told: list[str] = []
    compare(log(("ab", 3)), log(("b", 2)), progress=lambda text, fraction: told.append(text))
    assert "Directly-follows graphs" in told


@pytest.mark.parametrize(
    ("low", "high", "code"),
    [(0.9653, 0.9698, "likeness-almost"), (0.96, 0.98, "similarity-bounded"), (0.848, 0.8521, "likeness-main")],
)
def test_a_narrow_interval_is_told_as_one_number_by_its_lower_end(low: float, high: float, code: str) -> None:
    result = compare(log(("ab", 3)), log(("ab", 3)))
    found = {**result.results, "relative_log_similarity": Found.bounded(low, high)}
    told = comparison._likeness(replace(result, results=found, verdicts={}))
    assert [one.code for one in told if isinstance(one, OwnerMessage)] == [code]


def test_the_verdict_names_the_chance_that_an_interval_does_not_hold() -> None:
    result = compare(log(("ab", 3)), log(("ab", 3)))
    found = {**result.results, "relative_log_similarity": Found.bounded(0.7, 0.8, certain=False)}
    (told,) = comparison._likeness(replace(result, results=found, verdicts={}))
    assert isinstance(told, OwnerMessage) and told.code == "similarity-bounded-by-sample"


def test_the_verdict_warns_of_a_fitting_model_that_covers_little() -> None:
    result = compare(log(("abcdef", 3), ("fedcba", 1)), log(("abc", 4)))
    assert isinstance(result, Comparison)
    warned = comparison.verdict_of(replace(result, results={**result.results, "fitness": Found(0.99)}))
    warning = sentence("model-of-few-steps", fitness="99 %")
    assert warning in warned and warned.replace(warning, "").split() == result.verdict.split()


@pytest.mark.slow
def test_no_share_in_the_verdict_is_rounded_to_nothing_or_to_all() -> None:
    result = compare(log(("abc", 300), ("acb", 2)), log(("abc", 300), ("acb", 1), ("aab", 1)), models=False)
    assert sentence("variants-kept", n=2, share="99.7 %", common=2, added=1) in result.verdict
    assert sentence("steps-moved", moved="0.3 %", kinds="100 %") in result.verdict
    many = compare(log(("ab", 1)), log(("ab", 300)), models=False)
    assert sentence("cases-multiplied", times="300") in many.verdict


@pytest.mark.slow
def test_the_frame_has_the_numbers_of_use_cases_with_what_is_kept() -> None:
    first, second = log(("abc", 30), ("abd", 20)), log(("abc", 28), ("abd", 22))
    frame = compare(first, second, models=False, use_cases="discovery, conformance").to_frame().set_index("measure")
    assert frame.value["discovery.fitness"] == pytest.approx(1.0)
    kept = sentence("use-case-kept-share", number=frame.title["discovery.fitness"], share="100 %")
    assert frame.meaning["discovery.fitness"] == kept
    with refused(ParameterError, "use-case-unknown", unknown="discovry"):
        compare(first, second, use_cases="discovry")
    for wrong in (None, 3, [1]):
        with refused(ParameterError, "use-case-names-invalid"):
            compare(first, second, use_cases=wrong)  # type: ignore[arg-type]


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("subset", ["began=2024-01-01..2024-01-03", "urgency=1"])
def test_a_release_of_a_subset_is_held_against_the_same_subset(subset: str, tmp_path: Path) -> None:
    whole = hospital(400, seed=1)
    released = veilog.release(whole, "evolve", epsilon=1, activities="log", subset=subset)
    own = Partition.of(subset).of_log(whole)
    assert 0 < own.number_of_cases < 400
    released.save(tmp_path / "subset.xes")
    for form in (released, tmp_path / "subset.xes"):
        assert compare(whole, form, models=False).original_cases == own.number_of_cases
    assert compare(own, released, models=False).original_cases == own.number_of_cases
    assert compare(whole.variants, released, models=False).original_cases == 400
    text = veilog.dossier(released, whole).parts[0]
    assert str(own.number_of_cases) in str(text) or veilog.dossier(released, own).parts[0] == text


def test_lost_activities_are_in_the_verdict_and_what_use_cases_are_told_is_checked() -> None:
    first, second = log(("abcd", 95), ("e", 5)), log(("abcd", 100))
    assert sentence("activities-kept", share="80 %") in compare(first, second, models=False).verdict
    assert sentence("activities-kept", share="100 %") not in compare(first, first, models=False).verdict
    with refused(ParameterError, "comparison-asked-invalid"):
        compare(first, second, asked=3)  # type: ignore[arg-type]
