"""Re-identification: exact where possible, never falling, never zero unmeasured."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence

import veilog
from veilog._language import count_phrase
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.measures.singling_out import exposure
from veilog.measures.singling_out.logs import shuffle_places
from veilog.measures.singling_out.rates import Rate, monotone_rates
from veilog.measures.singling_out.words import found_sentence, knowledge_sentence, like_who, own_path_sentence
from veilog.messages import Message

traces = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 3), min_size=1, max_size=6).map(Variants.from_dict)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def has(trace: tuple[str, ...], known: tuple[str, ...]) -> bool:
    rest = iter(trace)
    return all(activity in rest for activity in known)


def truth(variants: Variants, size: int) -> tuple[float, float]:
    """The shares found and guessed over all that can be known of everybody."""
    counts = variants.to_dict()
    found = guessed = people = 0.0
    for trace, number in counts.items():
        if not trace:
            continue
        people += number
        every = list(itertools.combinations(range(len(trace)), min(size, len(trace))))
        for places in every:
            fit = {t: n for t, n in counts.items() if has(t, tuple(trace[i] for i in places))}
            found += number * (sum(fit.values()) == 1) / len(every)
            best = max(fit.values())
            guessed += number * (number == best) / sum(n == best for n in fit.values()) / len(every)
    return found / people, guessed / people


@pytest.mark.slow
@settings(max_examples=15)
@given(some_logs)
def test_estimates_agree_with_all_that_can_be_known_and_never_fall(variants: Variants) -> None:
    result = exposure(variants, sizes=(1, 2, 3), attacks=4000)
    counts = variants.to_dict()
    assert result.alone == sum(n for n in counts.values() if n == 1)
    for row in result.results:
        found, guessed = truth(variants, row.size)
        assert row.found.value == pytest.approx(found, abs=0.06)
        assert row.guessed.value == pytest.approx(guessed, abs=0.06)
        assert 0.0 <= row.found.low <= row.found.value <= row.found.high <= 1.0
        assert row.found.high <= result.alone / row.people + 1e-12  # no other person can be found without a start
    for less, more in itertools.pairwise(result.results):
        for one, other in ((less.found, more.found), (less.guessed, more.guessed)):
            assert one.value <= other.value + 1e-12
            assert one.low <= other.low + 1e-12 and one.high <= other.high + 1e-12


@pytest.mark.slow
def test_intervals_cover_what_is_true() -> None:
    variants = hospital(120, seed=1).variants
    every = exposure(variants, sizes=(3, 5), attacks=20_000).results
    hits = 0
    for seed in range(25):
        for row, true in zip(exposure(variants, sizes=(3, 5), attacks=100, seed=seed).results, every, strict=True):
            hits += row.found.low <= true.found.value <= row.found.high
            hits += row.guessed.low <= true.guessed.value <= row.guessed.high
    assert hits >= 92  # of 100: Wilson's intervals of zeros and ones are wider than what is between them needs


@pytest.mark.slow
def test_the_day_finds_more_and_an_example_is_told() -> None:
    events = hospital(300, seed=1)
    result = exposure(events, sizes=(1, 3))
    rows = {(row.size, row.with_start): row for row in result.results}
    assert rows[3, True].found.value > rows[3, False].found.value
    assert rows[3, True].guessed.value > rows[3, False].guessed.value
    told = result.example
    assert told is not None and like_who(told).startswith("For example, ")
    assert told.with_start or sum(has(trace, told.activities) for trace in events.variants.to_dict()) == 1
    only = exposure(events.variants, sizes=(1, 3))
    assert only.without_start == Message("starts-of-variants") and not any(row.with_start for row in only.results)
    turned = events.only(np.arange(events.number_of_cases)[::-1])
    assert exposure(turned, sizes=(1, 3)).results == result.results


def test_what_is_known_of_cases_is_said_once() -> None:
    alike = exposure(log(("abc", 4), ("dec", 4)), sizes=[1, 2, 3]).results
    said = found_sentence(alike)
    assert " 1, 2 or 3 activities " in said and said.count(sentence("found-none", others="cases")) == 1
    said = knowledge_sentence("Whoever knows", "", [(1, "finds 4"), (2, "finds 4"), (3, "finds 5")])
    assert [said.count(word) for word in (" 1 or 2 activities ", "finds 4;", " 3 finds 5.", "activities")] == [1] * 4
    said = knowledge_sentence("Whoever knows", "", [(1, "finds 4"), (2, "finds 5")], ordered=True)
    assert said.count(" 1 activity ") == said.count("order") == 1, "one activity has no order"
    assert said.index("finds 4;") < said.index(" 2") < said.index("order") < said.index("finds 5.")


@pytest.mark.slow
def test_nothing_is_called_zero_that_was_not_measured() -> None:
    many = Variants.from_dict({("a", *("b" * i), "c"): 1 for i in range(200)})
    row = exposure(many, sizes=[1]).results[0]
    assert row.found.value == 0.0 < row.found.high
    high = math.ceil(row.found.high * row.people)
    assert sentence("found-hardly", high=high, people=count_phrase(row.people, "case")) in found_sentence([row])
    exact = {r.size: r.unique for r in risk(many, "sequence", [1]) if r.exact}
    certain = exposure(many, sizes=[1]).at_most(exact).results[0]
    nobody = sentence("found-none", others="cases")
    assert certain.found == Rate(0.0, 0.0, 0.0) and nobody in found_sentence([certain])
    shared = exposure(log(("ab", 2), ("cd", 3)), sizes=[1]).results[0]
    assert shared.found == Rate(0.0, 0.0, 0.0) and nobody in found_sentence([shared])
    assert own_path_sentence(5, 0) == sentence("path-alone-none", cases=5)
    assert own_path_sentence(1_000, 129) == sentence("path-alone-cases", share="12.9 %", cases=1_000, alone=129)


def test_a_log_of_one_case_is_found_by_anything() -> None:
    result = exposure(log(("abc", 1)), sizes=[1, 10])
    assert [row.found.value for row in result.results] == [1.0, 1.0]
    assert all(row.found.low > 0.99 for row in result.results)
    with refused(ParameterError, "attack-log-without-events"):
        exposure(log(("", 3)))


@pytest.mark.slow
def test_a_log_of_very_many_variants_is_measured_as_well() -> None:
    rng = np.random.default_rng(1)
    many = Variants.from_dict({tuple(f"a{i}" for i in rng.integers(0, 30, 8)): 1 + i % 2 for i in range(21_000)})
    result = exposure(many, sizes=(2, 5))
    assert result.alone == int(many.counts[many.counts == 1].sum())
    first, second = result.results
    assert first.attacks >= 200 and first.found.value < second.found.value
    assert second.found.high - second.found.low < 0.1


def test_what_cannot_fall_is_made_so() -> None:
    rates = monotone_rates([Rate(0.3, 0.2, 0.4), Rate(0.1, 0.05, 0.35), Rate(0.5, 0.4, 0.6)])
    assert [rate.value for rate in rates] == [0.3, 0.3, 0.5]
    assert [rate.low for rate in rates] == [0.2, 0.2, 0.4] and [rate.high for rate in rates] == [0.4, 0.4, 0.6]


def of_people(rows: list[tuple[str, str | None, int]]) -> veilog.EventLog:
    """Return cases with a path, a person (None for no name) and the day of the start."""
    cases = [i for i, (path, _, _) in enumerate(rows) for _ in path]
    return veilog.read(
        pa.table(
            {
                "case": [f"c{case:03d}" for case in cases],
                "activity": [activity for path, _, _ in rows for activity in path],
                "time": pa.array(
                    [day * 86_400 + 60 * i for path, _, day in rows for i in range(len(path))], pa.timestamp("s")
                ),
                "Patient": pa.array([rows[case][1] for case in cases], pa.string()),
            }
        )
    )


def truth_of_people(rows: list[tuple[str, str | None, int]], size: int, with_start: bool) -> float:
    """Return the share of people found, over all of their cases and all knowledge."""
    owners = [name or f"nobody {i}" for i, (_, name, _) in enumerate(rows)]
    found = 0.0
    for person in dict.fromkeys(owners):
        own = [i for i, owner in enumerate(owners) if owner == person]
        for i in own:
            path, _, day = rows[i]
            every = list(itertools.combinations(path, min(size, len(path))))
            for known in every:
                fit = {
                    owner
                    for owner, (other, _, at) in zip(owners, rows, strict=True)
                    if has(tuple(other), known) and (not with_start or abs(at - day) <= 1)
                }
                found += (fit == {person}) / len(every) / len(own)
    return found / len(set(owners))


PEOPLE = st.lists(
    st.tuples(
        st.text("abc", min_size=1, max_size=4), st.sampled_from([None, "ann", "bob", "eve", "kim"]), st.integers(0, 6)
    ),
    min_size=2,
    max_size=9,
)


@pytest.mark.slow
@settings(max_examples=30)
@given(PEOPLE)
def test_a_person_is_found_by_what_fits_cases_of_that_person_alone(rows: list[tuple[str, str | None, int]]) -> None:
    result = exposure(of_people(rows), person="Patient", sizes=(1, 2, 3), attacks=4_000)
    owners = {name or f"nobody {i}" for i, (_, name, _) in enumerate(rows)}
    paths = {path: {n or f"nobody {i}" for i, (p, n, _) in enumerate(rows) if p == path} for path, _, _ in rows}
    assert result.people == len(owners)
    assert result.alone == len(set().union(*(who for who in paths.values() if len(who) == 1)))
    for row in result.results:
        assert row.people == len(owners)
        assert row.found.value == pytest.approx(truth_of_people(rows, row.size, row.with_start), abs=0.06)


def test_a_persons_own_cases_hide_nobody() -> None:
    """Two equal visits of one patient reveal no case, but they reveal the person."""
    rows = [("abc", "ann", 0), ("abc", "ann", 0), ("de", "bob", 0), ("de", "eve", 0)]
    log = of_people(rows)
    by_case, by_person = (exposure(log, person=person, sizes=[1]) for person in (False, True))
    assert (by_case.person, by_case.people, by_case.alone) == (None, 4, 0)
    assert [row.found.value for row in by_case.results] == [0.0, 0.0]
    assert (by_person.person, by_person.people, by_person.alone) == ("Patient", 3, 1)
    assert [row.found.value for row in by_person.results] == [pytest.approx(1 / 3)] * 2
    assert by_person.example is not None and len(by_person.example.activities) == 1
    assert "person" in like_who(by_person.example, persons=True)


@pytest.mark.slow
def test_the_same_question_has_the_same_answer_whatever_else_is_asked() -> None:
    """Equal sizes have equal results, also when other sizes are requested with them."""
    log = hospital(150, seed=3)
    few, many = (exposure(log, sizes=sizes) for sizes in ((1, 2, 3), (3, 5, 10, 1)))
    rows = {(row.size, row.with_start): row for row in many.results}
    assert [rows[row.size, row.with_start] for row in few.results if row.size != 2] == [
        row for row in few.results if row.size != 2
    ]
    assert few.example == many.example is not None


@pytest.mark.nightly
@settings(max_examples=60)
@given(PEOPLE, st.booleans())
def test_no_part_of_an_example_can_be_left_out(rows: list[tuple[str, str | None, int]], persons: bool) -> None:
    """Each named activity and the day are necessary to find the person of an example."""
    log = of_people(rows)
    example = exposure(log, person="Patient" if persons else False, sizes=(1, 2, 3)).example
    owners = [name if persons and name else i for i, (_, name, _) in enumerate(rows)]

    def found(known: tuple[str, ...], day: str | None) -> int:
        """Return the number of people with cases that fit, within a day of the known one."""
        at = [f"1970-01-{1 + d:02d}" for _, _, d in rows]
        least = len(rows)
        for i, (path, _, own) in enumerate(rows):
            if has(tuple(path), known) and day in (None, at[i]):
                near = range(len(rows)) if day is None else [k for k, row in enumerate(rows) if abs(row[2] - own) <= 1]
                least = min(least, len({owners[k] for k in near if has(tuple(rows[k][0]), known)}))
        return least

    if example is None:
        return
    day = example.day if example.with_start else None
    assert found(example.activities, day) == 1
    for i in range(len(example.activities)):
        assert found(example.activities[:i] + example.activities[i + 1 :], day) > 1
    if example.with_start:
        assert found(example.activities, None) > 1


def test_known_places_are_the_first_of_a_whole_random_order_and_none_is_held_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = np.random.default_rng(1).integers(0, 40, 60)
    keys = np.random.default_rng(2).random((60, int(lengths.max())))
    keys[np.arange(keys.shape[1])[None, :] >= lengths[:, None]] = np.inf
    whole = np.where(np.sort(keys, axis=1) < np.inf, np.argsort(keys, axis=1), -1)
    for most, held in ((1, 1), (3, 100), (6, 10_000), (99, 100)):
        monkeypatch.setattr("veilog.measures.singling_out.logs._KEYS", held)
        found = shuffle_places(lengths, most, np.random.default_rng(2))
        assert np.array_equal(found, whole[:, :most])
    assert shuffle_places(np.zeros(3, dtype=np.int64), 2, np.random.default_rng(1)).shape == (3, 0)
