"""Linkability: two lists about people matched by a log, against both controls."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import openly
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence

import veilog
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import compare
from veilog.measures.singling_out import halves, linkability
from veilog.measures.singling_out.linkage import Linkability
from veilog.measures.singling_out.words import linked_in_words, lists_of, result_sentence

traces = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 4), min_size=1, max_size=6).map(Variants.from_dict)

PAIRS = [(first, last) for first in "abcd" for last in "wxyz"]
"""Beginnings and ends of cases of a made-up process."""


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def drawn(cases: int, rng: np.random.Generator) -> Variants:
    """People of a process whose cases often, and not always, end as they began."""
    found: dict[tuple[str, ...], int] = {}
    for _ in range(cases):
        first = int(rng.integers(4))
        last = first if rng.random() < 0.5 else int(rng.integers(4))
        trace = ("abcd"[first], *("m" * int(rng.integers(3))), "wxyz"[last])
        found[trace] = found.get(trace, 0) + 1
    return Variants.from_dict(found)


def shares(result: Linkability) -> list[tuple[float, float, float]]:
    return [(r.linked.original.value, r.linked.released.value, r.linked.baseline.value) for r in result.results]


def test_a_worked_example() -> None:
    """A release of ad and cb matches both rows of two people, ab and cd, wrongly.

    No other person has a case like theirs, so one of two matches is right by chance.
    """
    (row,) = linkability(log(("ab", 1), ("cd", 1)), log(("ad", 1), ("cb", 1)), sizes=[1]).results
    assert (row.people, row.naive, row.releases, row.other_list) == (2, 0.5, 1, "activities")
    assert (row.linked.original.value, row.linked.released.value, row.linked.baseline.value) == (1.0, 0.0, 0.5)
    assert row.beyond.value == -0.5 and row.residual.value == -1.0 and not row.more


def test_a_release_that_is_the_original_links_everybody_it_can_and_nobody_held_out() -> None:
    """Each of 60 people begins and ends alone; those held out have other activities."""
    own, others = (
        Variants.from_dict({(f"a{i}", "m", f"z{i}"): 1 for i in part}) for part in (range(60), range(60, 120))
    )
    result = linkability(own, own, control=others, sizes=[1, 3])
    assert result.control == "held out"
    for row in result.results:
        assert row.linked.original.value == row.linked.released.value == 1.0
        assert row.linked.baseline.value == pytest.approx(1 / 60) == pytest.approx(row.naive)
        assert row.more and row.residual.value == pytest.approx(1.0)
    assert linked_in_words(result).endswith(sentence("attack-more-held-out"))
    without = linkability(own, own, sizes=[1])
    assert without.control == "others' cases" and shares(without) == [(1.0, 1.0, pytest.approx(1 / 60))]


def test_what_others_have_too_is_no_gain() -> None:
    """Each case occurs three times, so a person is linked without the own case, too."""
    original = Variants.from_dict({(f"a{i}", f"z{i}"): 3 for i in range(20)})
    (row,) = linkability(original, original, sizes=[1]).results
    assert row.linked.released == row.linked.baseline and row.beyond.value == 0.0 and not row.more


@pytest.mark.slow
def test_a_release_that_never_saw_the_people_is_blamed_no_more_often_than_is_stated() -> None:
    """Log, release and control come from one process: 0.25 % of 120 rows may be above."""
    rng = np.random.default_rng(5)
    rows = [
        row
        for _ in range(60)
        for row in linkability(
            drawn(150, rng), drawn(150, rng), control=drawn(150, rng), sizes=[1, 3], people=100
        ).results
    ]
    assert len(rows) == 120
    assert sum(row.more for row in rows) <= 2  # 3 or more: one in 280
    gains = np.array([row.beyond.value for row in rows])
    assert abs(gains.mean()) < 4 * gains.std() / len(gains) ** 0.5
    assert sum(row.residual.low <= 0 <= row.residual.high for row in rows) >= 115
    assert np.mean([row.linked.released.value for row in rows]) > 0.012  # it does find out what holds of all


def test_two_releases_link_more_than_either() -> None:
    """Each of the two has the cases of one half of the people."""
    own = Variants.from_dict({(f"a{i}", f"z{i}"): 1 for i in range(40)})
    first, second = halves(own)
    one, both = linkability(own, first, second=second, sizes=[1]).results
    assert (one.releases, both.releases) == (1, 2)
    assert one.linked.released.value < 0.6 < both.linked.released.value == both.linked.original.value == 1.0
    assert lists_of(both) == sentence("lists-of-two-releases", lists=lists_of(replace(both, releases=1)))
    assert lists_of(both) in linked_in_words(linkability(own, first, second=second, sizes=[1]))


def with_wards(events: EventLog) -> EventLog:
    """The same log, whose cases have a ward of their own."""
    wards = pa.array([f"ward {i % 50}" for i in range(events.number_of_cases)])
    return EventLog(events.events, events.cases.append_column("ward", wards), events.metadata)


@pytest.mark.slow
def test_lists_of_attributes_are_linked_where_the_release_has_them() -> None:
    events = with_wards(hospital(300, seed=1))
    first, second = halves(events)
    assert isinstance(first, EventLog)
    rows = [r for r in linkability(first, first, control=second).results if r.other_list == "attributes"]
    assert rows[-1].more and rows[-1].linked.baseline.value < 0.1 < rows[-1].linked.released.value
    assert {r.other_list for r in linkability(first, first.variants).results} == {"activities"}


def test_halves_are_halves() -> None:
    events = hospital(41, seed=1)
    for whole in (events, events.variants):
        first, second = halves(whole)
        logs = [one if isinstance(one, Variants) else one.variants for one in (first, second)]
        assert [one.cases for one in logs] == [21, 20]
        together = {t: sum(one.to_dict().get(t, 0) for one in logs) for t in events.variants.to_dict()}
        assert together == events.variants.to_dict()


def test_nobody_has_cases_in_both_halves_where_it_is_known_whose_they_are(tmp_path: Path) -> None:
    rows = [f"v{i},in,2024-01-{1 + i % 27:02d},{'' if i < 4 else f'p{i // 4}'}" for i in range(84)]
    (tmp_path / "log.csv").write_text("\n".join(["case,activity,time,Patient", *rows]) + "\n")
    log = veilog.read(tmp_path / "log.csv")
    for seed in range(5):
        people = [set(half.events["Patient"].to_pylist()) - {None} for half in halves(log, seed, person="Patient")]
        assert not people[0] & people[1] and len(people[0] | people[1]) == 20
        assert sum(half.number_of_cases for half in halves(log, seed, person="Patient")) == 84
    assert max(half.number_of_cases for half in halves(log, person="Patient")) <= 52


@pytest.mark.slow
@settings(max_examples=12)
@given(some_logs, st.one_of(some_logs, st.just(Variants.from_dict({}))), st.one_of(st.none(), some_logs))
def test_shares_are_shares(a: Variants, b: Variants, control: Variants | None) -> None:
    try:
        result = linkability(a, b, control=control)
    except ParameterError as error:
        assert "too few people" in str(error).lower()
        return
    for row in result.results:
        for rate in vars(row.linked).values():
            assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
        assert -1.0 <= row.beyond.low <= row.beyond.value <= row.beyond.high <= 1.0
        assert row.residual.low <= row.residual.value <= row.residual.high <= 1.0
        if b.cases == 0:
            assert row.linked.released.value == pytest.approx(row.naive)


def test_nothing_depends_on_the_order_of_cases_and_senseless_settings_are_refused() -> None:
    events = hospital(60, seed=5)
    turned = events.only(np.arange(events.number_of_cases)[::-1])
    assert linkability(events.variants, events).results == linkability(turned.variants, turned).results
    with refused(ParameterError, "linking-without-cases"):
        linkability(log(), log(("ab", 1)))
    for wrong in ({"sizes": []}, {"sizes": [0]}, {"people": 1}, {"seed": -1}):
        with pytest.raises(ParameterError):
            linkability(events, events, **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_comparison_has_it_and_says_which_control_was_used() -> None:
    first, second = halves(hospital(120, seed=1))
    made = openly.release(first, "laplace", epsilon=5, depth=3, seed=1).variants
    with_control = compare(first, made, control=second, models=False)
    told = with_control.to_json()
    assert (
        told["linkability"]["control"] == told["inference"]["control"] == told["singling_out"]["control"] == "held out"
    )  # type: ignore[index]
    assert with_control.singling_out is not None
    assert result_sentence(with_control.singling_out) in with_control.verdict
    alone = compare(first, made, models=False)
    assert alone.linkability is not None and alone.linkability.control == "others' cases"
    assert alone.singling_out is not None and result_sentence(alone.singling_out) in alone.verdict
