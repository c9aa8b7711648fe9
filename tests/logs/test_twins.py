"""Synthetic logs have the given sizes and no more, and maps group activities."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

import veilog
from veilog import InputError, ParameterError, Variants
from veilog.logs.input.activity_mapping import as_csv, load_mapping, propose_mapping
from veilog.logs.synthetic.twins import BINS, Sizes, log_of, twin_of

LOG = Variants.from_dict({("a", "b", "c"): 60, ("a", "c"): 30, ("a", "b", "b", "c"): 9, ("d",): 1})


def test_the_same_seed_gives_the_same_twin_and_another_another() -> None:
    sizes = Sizes(cases=200, length=5, activities=6, frequent=0.2)
    assert twin_of(sizes, 1) == twin_of(sizes, 1) != twin_of(sizes, 2)


@pytest.mark.parametrize("frequent", [0.1, 0.6])
def test_a_twin_has_about_the_sizes_told(frequent: float) -> None:
    made = Sizes.of(twin_of(Sizes(cases=800, length=6, activities=9, frequent=frequent), 3))
    assert made.cases == 800
    assert made.activities is not None and made.activities <= 9
    assert 4.5 <= made.length <= 7.5
    assert made.frequent is not None and abs(made.frequent - frequent) < 0.12


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("frequent", "ten", "hundred"), [(0.1, 0.4, 0.8), (0.05, 0.3, 0.95), (0.5, 0.6, 0.9)])
def test_the_most_frequent_variants_have_the_cases_told(frequent: float, ten: float, hundred: float) -> None:
    """A budget that finds a variant of that many cases finds it in the twin, too."""
    sizes = Sizes(cases=600, length=6, activities=9, frequent=frequent, ten=ten, hundred=hundred)
    made = Sizes.of(twin_of(sizes, 2))
    assert made.cases == 600
    assert made.frequent == pytest.approx(frequent, abs=0.01)
    assert made.ten == pytest.approx(ten, abs=0.02) and made.hundred == pytest.approx(hundred, abs=0.03)


@pytest.mark.slow
def test_cases_of_a_twin_seldom_do_again_what_they_did() -> None:
    """Cases of a twin seldom repeat activities, as in real logs."""
    made = [twin_of(Sizes(cases=300, length=6, activities=20, frequent=0.2), seed) for seed in range(4)]
    events = sum(one.events for one in made)
    different = sum(len(set(case)) * count for one in made for case, count in one.to_dict().items())
    assert different / events > 0.8


@pytest.mark.nightly
def test_twins_of_noisy_sizes_are_of_sizes_that_may_have_given_them() -> None:
    sizes = Sizes(cases=300, length=4, activities=5, frequent=0.2, off=(100.0, 30.0))
    made = [Sizes.of(twin_of(sizes, seed)) for seed in range(6)]
    assert all(one.cases >= 1 for one in made) and len({one.cases for one in made}) == 6
    assert np.ptp([one.frequent or 0 for one in made]) > 0.05
    assert {twin_of(replace(sizes, off=(0.0, 30.0)), seed).cases for seed in range(3)} == {300}


def test_twins_of_noisy_lengths_are_of_lengths_that_may_have_given_the_answers() -> None:
    answers = (3, 20, 90, 130, 80, 20, -10, 30, *[0] * 15)
    shares = tuple(max(0, one) / 373 for one in answers)
    sizes = Sizes(cases=340, length=3.5, activities=5, lengths=shares, off=(0.0, 10.0, 35.0), answers=answers)
    made = [Sizes.of(twin_of(sizes, seed)) for seed in range(4)]
    assert len({one.lengths for one in made}) == 4 and np.ptp([one.length for one in made]) > 0.3
    assert all(2.5 < one.length < 7 for one in made)
    told = [Sizes.of(twin_of(replace(sizes, off=(0.0, 10.0)), seed)) for seed in range(4)]
    assert np.ptp([one.length for one in told]) < 0.3
    with refused(ParameterError, "twin-bins-wrong", number=23):
        replace(sizes, answers=answers[1:])
    for off in ((1.0,), (1.0, -1.0), (1.0, 2.0, 3.0, 4.0)):
        with refused(ParameterError, "twin-offset-invalid"):
            replace(sizes, off=off)


@pytest.mark.nightly
def test_what_cannot_be_is_mended_in_each_twin_and_not_in_the_answers() -> None:
    """Impossible answers are repaired in each twin, not in the answers themselves.

    An answer of more cases for one variant than for ten means no more for ten than their own answer.
    """
    sizes = Sizes(cases=300, length=4, activities=5, frequent=0.7, ten=0.7, hundred=0.8, off=(0.0, 20.0))
    told = replace(sizes, held=(210.0, 120.0, 240.0))
    mended, given = ([Sizes.of(twin_of(one, seed)).ten or 0 for seed in range(5)] for one in (sizes, told))
    assert max(given) < min(mended)
    with refused(ParameterError, "twin-heads-wrong", number=3):
        replace(sizes, held=(1.0,))


@pytest.mark.nightly
def test_there_may_be_no_more_variants_than_are_counted_together() -> None:
    """Some twins have only the hundred variants that hold nearly all cases."""
    sizes = Sizes(cases=300, length=4, activities=5, frequent=0.3, ten=0.7, hundred=0.97, off=(0.0, 30.0))
    held = [Sizes.of(twin_of(sizes, seed)).hundred or 0 for seed in range(6)]
    assert sum(share > 0.999 for share in held) >= 2


def test_exact_sizes_of_a_log_are_those_of_its_variants() -> None:
    found = Sizes.of(LOG)
    assert (found.cases, found.activities, found.variants, found.frequent, found.ten) == (100, 4, 4, 0.6, 1.0)
    assert found.lengths is not None and found.lengths[:5] == (0, 0.01, 0.3, 0.6, 0.09)
    assert len(found.lengths) == len(BINS)


def test_a_twin_has_the_names_declared_and_no_case_longer_than_declared() -> None:
    made = twin_of(Sizes(cases=100, length=6, activities=3), 0, ("x", "y", "z"), longest=4)
    assert set(made.labels) <= {"x", "y", "z"}
    assert made.lengths.max() <= 4


def test_the_log_of_a_twin_has_its_variants_and_times() -> None:
    made = twin_of(Sizes(cases=50, length=3, activities=4), 0)
    log = log_of(made, 0)
    assert log.variants == made
    assert log.events.column("time:timestamp").null_count == 0


@pytest.mark.parametrize(
    ("told", "code", "values"),
    [
        ({"cases": 0, "length": 3}, "twin-number-out-of-range", {"name": "cases", "least": 1}),
        ({"cases": 5, "length": -1}, "twin-number-out-of-range", {"name": "length", "least": 0}),
        ({"cases": 5, "length": 3, "variants": 6}, "twin-number-out-of-range", {"name": "variants", "most": 5}),
        ({"cases": 5, "length": 3, "frequent": 1.5}, "twin-share-out-of-range", {"share": 1.5}),
    ],
)
def test_impossible_sizes_are_refused(told: dict[str, float], code: str, values: dict[str, float]) -> None:
    with refused(ParameterError, code, **values):
        Sizes(**told)  # type: ignore[arg-type]


def test_every_event_is_mapped_by_itself_and_the_release_says_so() -> None:
    groups = {"a": "start", "b": "work", "c": "work", "d": "work"}
    mapped = load_mapping(groups).of_variants(LOG)
    assert mapped.to_dict() == {
        ("work",): 1,
        ("start", "work"): 30,
        ("start", "work", "work"): 60,
        ("start", "work", "work", "work"): 9,
    }
    conditions = veilog.release(mapped, "travas", epsilon=1, delta="1e-3").guarantee.conditions
    assert [condition.code for condition in conditions] == ["activities-mapped"]
    assert "(SHA-256 " in str(conditions[0].text)


def test_a_log_and_its_variants_are_mapped_alike() -> None:
    log = log_of(twin_of(Sizes(cases=40, length=4, activities=5), 0), 0)
    found = load_mapping({name: f"group {i % 2}" for i, name in enumerate(log.variants.labels)})
    assert found.of_log(log).variants == found.of_variants(log.variants)
    assert found.of_log(log).mapped == found.of_variants(log.variants).mapped == (found.told,)


def test_adding_a_case_adds_a_case_after_mapping() -> None:
    """Neighbouring logs stay neighbours."""
    found = load_mapping({"a": "x", "b": "x", "*": "rest"})
    more = Variants.from_dict({**LOG.to_dict(), ("b", "d"): 1})
    before, after = found.of_variants(LOG).to_dict(), found.of_variants(more).to_dict()
    assert {k: after[k] - before.get(k, 0) for k in after if after[k] != before.get(k, 0)} == {("x", "rest"): 1}


def test_activities_without_a_row_are_named() -> None:
    with refused(InputError, "map-row-missing", names="'c', 'd'"):
        load_mapping({"a": "x", "b": "x"}).of_variants(LOG)


def test_a_map_comes_from_csv_and_json_and_levels_count_from_the_finest(tmp_path: Path) -> None:
    table, told = tmp_path / "m.csv", tmp_path / "m.json"
    table.write_text("activity,level 1,level 2\na,fine a,all\nb,fine b,all\n*,rest\n")
    told.write_text(json.dumps({"a": ["fine a", "all"], "b": ["fine b", "all"], "*": "rest"}))
    for path in (table, told):
        assert load_mapping(path).names == ("fine a", "fine b", "rest")
        assert load_mapping(path, level=2).names == ("all", "rest")
    with refused(ParameterError, "map-level-missing"):
        load_mapping(table, level=3)


def test_top_keeps_the_first_of_a_list_and_needs_one(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("c\na\nb\nd\n")
    log = tmp_path / "log.csv"
    log.write_text("case,activity,timestamp\n" + "".join(f"1,{a},2024-01-0{i}\n" for i, a in enumerate("abc", 1)))
    found = veilog.read_variants(log, map=names, top=2)
    assert found.to_dict() == {("a", "other", "c"): 1}
    with refused(ParameterError, "map-top-without-level", top=2):
        veilog.read_variants(log, top=2)
    with refused(ParameterError, "map-level-without-map"):
        veilog.read(log, level=2)


def test_a_hierarchy_follows_the_structure_of_the_labels(tmp_path: Path) -> None:
    labels = ("01_HOOFD_010", "01_HOOFD_020", "01_BB_540", "02_DRZ_010", "02_DRZ_020", "blood test", "urine test", "x")
    found = propose_mapping(labels)
    assert found["01_HOOFD_010"] == ("01 hoofd", "01") and found["01_BB_540"] == ("01", "01")
    assert found["02_DRZ_020"] == ("02 drz", "02")
    assert found["blood test"] == found["urine test"] == ("test", "test")
    assert found["x"] == ("x", "x")
    path = tmp_path / "m.csv"
    path.write_text(as_csv(found))
    assert set(load_mapping(path, level=2).names) == {"01", "02", "test", "x", "other"}


def test_sizes_do_not_depend_on_the_order_of_variants() -> None:
    backwards = Variants.from_dict(dict(reversed(LOG.to_dict().items())))
    assert Sizes.of(backwards) == Sizes.of(LOG)
    assert np.isclose(sum(Sizes.of(LOG).lengths or ()), 1)
