"""Inference: guesses of the end or an attribute of a case from its other parts."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.singling_out import halves, inference
from veilog.measures.singling_out.words import begun, inferred_in_words, percent

traces = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 4), min_size=1, max_size=6).map(Variants.from_dict)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def drawn(cases: int, rng: np.random.Generator) -> Variants:
    """People of a process whose cases often end as they began."""
    found: dict[tuple[str, ...], int] = {}
    for _ in range(cases):
        begun = tuple("ab"[int(i)] for i in rng.integers(0, 2, 3))
        trace = (*begun, "xy"[int(rng.random() < (0.8 if begun[0] == "a" else 0.3))])
        found[trace] = found.get(trace, 0) + 1
    return Variants.from_dict(found)


def test_a_worked_example() -> None:
    """After ab, the log has y most often, the release only x. One case alone is abx."""
    (row,) = inference(log(("abx", 1), ("aby", 2)), log(("abx", 5), ("c", 9)), sizes=[2]).results
    assert (row.secret, row.size, row.attributes, row.people) == ("last activity", 2, 0, 3)
    guessed = row.guessed.original.value, row.guessed.released.value, row.guessed.baseline.value
    assert guessed == (pytest.approx(2 / 3), pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert row.naive.value == 0.0  # c is most frequent


def test_where_no_case_begins_so_less_is_taken() -> None:
    """No released case begins with ab. After a most end in y; of all most end in z."""
    original = log(("aby", 4), ("dez", 6))
    (row,) = inference(original, log(("acy", 3), ("acx", 2), ("gz", 9)), sizes=[2]).results
    assert row.guessed.released.value == 1.0
    (row,) = inference(original, log(("acy", 2), ("acx", 2), ("gz", 9)), sizes=[2]).results
    assert row.guessed.released.value == pytest.approx((4 * 0.5 + 6) / 10)  # one of two that are as frequent


def test_only_cases_that_go_on_have_an_end_to_guess() -> None:
    assert [row.people for row in inference(log(("ab", 3), ("abc", 2)), log(("ab", 1)), sizes=[1, 2, 3]).results] == [
        5,
        2,
    ]
    with refused(ParameterError, "inference-cases-too-short"):
        inference(log(("a", 3)), log(("a", 3)))


def test_a_release_that_is_the_original_tells_all_and_of_people_held_out_nothing() -> None:
    """Every person begins alone. Those held out begin otherwise; half end as most do."""
    own, others = (
        Variants.from_dict({(f"a{i}", "m", "yx"[i % 2]): 1 for i in part}) for part in (range(100), range(100, 200))
    )
    (row,) = inference(own, own, control=others, sizes=[1]).results
    assert row.guessed.original.value == row.guessed.released.value == 1.0
    assert row.guessed.baseline.value == pytest.approx(0.5) and row.more
    assert row.residual.value == pytest.approx(1.0)
    (row,) = inference(own, own, sizes=[1]).results
    assert row.guessed.baseline.value == pytest.approx(0.5) and row.more


@pytest.mark.slow
def test_a_release_that_never_saw_the_people_is_blamed_no_more_often_than_is_stated() -> None:
    """Log, release and control come from one process: 0.25 % of 150 rows may be above."""
    rng = np.random.default_rng(3)
    rows = [
        row
        for _ in range(50)
        for row in inference(drawn(200, rng), drawn(200, rng), control=drawn(150, rng), sizes=[1, 2, 3]).results
    ]
    assert len(rows) == 150
    assert sum(row.more for row in rows) <= 4  # the three of one draw go together; 5 or more: about one in 100
    gains = np.array([row.beyond.value for row in rows[::3]])
    assert abs(gains.mean()) < 4 * gains.std() / len(gains) ** 0.5
    assert np.mean([row.guessed.released.value for row in rows]) > 0.7


def patients(number: int, seed: int) -> EventLog:
    """Return a hospital whose cases have a house, a street and an illness."""
    events = hospital(number, seed=seed)
    rng = np.random.default_rng(seed)
    columns = {
        "house": pa.array([f"house {i}" for i in rng.integers(0, number // 4, number)]),
        "street": pa.array([f"street {i}" for i in rng.integers(0, number // 4, number)]),
        "illness": pa.array(["abcd"[i] for i in rng.integers(0, 4, number)]),
    }
    cases = events.cases
    for name, column in columns.items():
        cases = cases.append_column(name, column)
    return EventLog(events.events, cases, events.metadata)


def test_attributes_of_people_in_the_log_are_told_and_of_those_held_out_not() -> None:
    """House and street identify the person; the illness does not depend on them."""
    first, second = halves(patients(240, seed=1))
    result = inference(first, first, control=second)
    assert result.without_attributes is None
    row = next(r for r in result.results if r.secret == "case:illness")
    assert row.guessed.released.value > 0.9 and row.guessed.baseline.value < 0.5 and row.more
    telling = max(result.results, key=lambda row: row.beyond.value)
    shares = {name: percent(getattr(telling.guessed, name)) for name in ("original", "released")}
    told = sentence(
        "attack-infers-held-out",
        known=begun(telling),
        secret=telling.secret,
        control=percent(telling.guessed.baseline),
        **shares,
    )
    assert inferred_in_words(result) == f"{told} {sentence('attack-more-held-out')}"
    independent = inference(first, patients(240, seed=2), control=second)
    assert not next(r for r in independent.results if r.secret == "case:illness").more


def test_why_no_attribute_is_guessed_is_said() -> None:
    events = patients(60, seed=1)
    refused = inference(events, events.variants).without_attributes
    assert refused is not None and refused.code == "inference-of-variants"
    bare = EventLog(events.events, events.cases.select(["concept:name"]), events.metadata)
    refused = inference(events, bare).without_attributes
    assert refused is not None and refused.code == "inference-without-attribute"


@pytest.mark.slow
@settings(max_examples=12)
@given(some_logs, st.one_of(some_logs, st.just(Variants.from_dict({}))), st.one_of(st.none(), some_logs))
def test_shares_are_shares(a: Variants, b: Variants, control: Variants | None) -> None:
    try:
        result = inference(a, b, control=control)
    except ParameterError as error:
        assert error.code == "inference-cases-too-short"
        return
    for row in result.results:
        for rate in (*vars(row.guessed).values(), row.naive):
            assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
        assert -1.0 <= row.beyond.low <= row.beyond.value <= row.beyond.high <= 1.0
        if control is None:
            assert row.guessed.original.value >= row.guessed.baseline.value - 1e-12
        if b.cases == 0:
            assert row.guessed.released.value == 0.0 and not row.more


def test_nothing_depends_on_the_order_of_cases() -> None:
    events = patients(60, seed=5)
    turned = events.only(np.arange(events.number_of_cases)[::-1])
    assert inference(events, events).results == inference(turned, turned).results
