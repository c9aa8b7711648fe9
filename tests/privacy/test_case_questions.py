"""Queries over events have their charged sensitivity, and see public codes alone."""

import datetime
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from veilog.audits.bounds import evidence_of_maximum, evidence_of_numbers
from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.privacy.account.guarantee import round_up
from veilog.privacy.cases import UNKNOWN_TIME, Cases, Coding, RawCases, _firsts, _last_below, attribute_level
from veilog.privacy.contributions import noise_of_sums, steps_of_cubes
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventRounds
from veilog.privacy.mechanisms import gaussian, noise
from veilog.privacy.mechanisms.mechanism import CubeNoise, Laplace, NoisyMaximum

Event = tuple[str, int | None, str | None, float | None]
"""Activity, seconds, an attribute of the event, and a number of the event."""
Case = tuple[str | None, list[Event]]
"""Attribute of the case, and its events."""

event = st.tuples(
    st.sampled_from("abcd"),
    st.none() | st.integers(-100_000, 10**9),
    st.none() | st.sampled_from(["x", "y", "z"]),
    st.none() | st.floats(-50, 200),
)
case = st.tuples(st.none() | st.sampled_from(["u", "v", "w"]), st.lists(event, max_size=6))
cases = st.lists(case, min_size=1, max_size=12)


def log_of(raw: list[Case]) -> EventLog:
    flat = [(i, *e) for i, (_, events) in enumerate(raw) for e in events]
    seconds = [None if e[2] is None else e[2] * 1_000_000 for e in flat]
    return EventLog(
        pa.table(
            {
                "case:index": pa.array([e[0] for e in flat], pa.int64()),
                "event:index": pa.array(range(len(flat)), pa.int64()),
                "concept:name": pa.array([e[1] for e in flat], pa.string()),
                "time:timestamp": pa.array(seconds, pa.int64()).cast(TIMESTAMP_TYPE),
                "colour": pa.array([e[3] for e in flat], pa.string()),
                "size": pa.array([e[4] for e in flat], pa.float64()),
            }
        ),
        pa.table(
            {
                "concept:name": pa.array([f"secret {i}" for i in range(len(raw))], pa.string()),
                "kind": pa.array([k for k, _ in raw], pa.string()),
            }
        ),
    )


def curator(raw: list[Case], **arguments: Any) -> Curator:
    log = log_of(raw)
    return Curator(log.variants, log=log, **arguments)


@contextmanager
def noise_off() -> Iterator[None]:
    def nothing(*arguments: object) -> np.ndarray:
        return np.zeros(next(a for a in reversed(arguments) if isinstance(a, int)), dtype=np.int64)

    with (
        patch.object(noise, "discrete_laplace", nothing),
        patch.object(noise, "tsgd_noise", nothing),
        patch.object(gaussian, "discrete_gaussian", nothing),
    ):
        yield


ALPHABET = ("b", "a", "zzz")
CODINGS = (Coding("colour", ("y", "x")), Coding("size", edges=(0.0, 10.0, 100.0)), Coding("kind", ("w",)))


def unbounded(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features of many sizes and signs that use all that a case shows."""
    owners = block.owners
    known = block.times != UNKNOWN_TIME
    colour = block.attributes["colour"] + 1
    value = np.where(known, np.where(known, block.times, 0) // 10**9, 7) + block.attributes["size"]
    kind = block.attributes["kind"]
    rows = np.concatenate([owners, np.arange(len(block))])
    columns = np.concatenate([(block.codes + 1) * 3 + colour, 12 + kind + 1])
    return rows, columns, np.concatenate([value, block.lengths])


SIZE = 14


def summed(raw: list[Case], bound: int, resolution: int, delta: float = 0, **arguments: Any) -> np.ndarray:
    asked = curator(raw, **arguments).events
    return asked.sums(unbounded, SIZE, bound, 1, delta=delta, alphabet=ALPHABET, codings=CODINGS, resolution=resolution)


@pytest.mark.slow
@given(raw=cases, extra=case, bound=st.integers(1, 9), resolution=st.sampled_from([1, 7, 1024]))
def test_one_case_changes_the_sums_by_no_more_than_the_bound(
    raw: list[Case], extra: Case, bound: int, resolution: int
) -> None:
    with noise_off():
        difference = summed([*raw, extra], bound, resolution) - summed(raw, bound, resolution)
    assert np.abs(difference).sum() <= bound * resolution
    with noise_off():
        difference = summed([*raw, extra], bound, resolution, 1e-6) - summed(raw, bound, resolution, 1e-6)
    assert sum(int(value) ** 2 for value in difference) <= (bound * resolution) ** 2


@pytest.mark.slow
@given(raw=cases, extra=case, length=st.integers(1, 3))
def test_a_declared_domain_keeps_neighbours_neighbours(raw: list[Case], extra: Case, length: int) -> None:
    domain = Domain.of(list("abd"), length)
    with noise_off():
        difference = summed([*raw, extra], 2, 10, domain=domain) - summed(raw, 2, 10, domain=domain)
    assert np.abs(difference).sum() <= 20


@given(
    st.lists(st.text("abd", max_size=4), max_size=6),
    st.none() | st.sampled_from(["ab", "abd", "d"]),
    st.none() | st.integers(1, 4),
)
def test_a_domain_that_holds_sequences_leaves_nothing_out_of_them(
    sequences: list[str], declared: str | None, length: int | None
) -> None:
    """A domain holds sequences exactly if it keeps every label in its place."""
    domain, labels = Domain.of(None if declared is None else list(declared), length), sorted(set("".join(sequences)))
    lengths = np.array([len(one) for one in sequences], dtype=np.int64)
    codes = np.array([labels.index(label) for one in sequences for label in one], dtype=np.int64)
    owner, offsets = np.repeat(np.arange(len(lengths)), lengths), np.concatenate([[0], np.cumsum(lengths)])
    assert domain.holds(labels, lengths) == bool(domain.keeps(labels, codes, owner, offsets).all())


@pytest.mark.slow
@given(raw=cases)
def test_sums_are_asked_of_single_cases(raw: list[Case]) -> None:
    """The sums of a log are those of its single cases, whatever else is in it."""
    with noise_off(), patch("veilog.privacy.cases._BLOCK", 3):
        together = summed(raw, 5, 16)
        alone = sum(summed([one], 5, 16) for one in raw)
    assert np.array_equal(together, alone)


def in_rows(raw: list[Case]) -> np.ndarray:
    """Sums in rows of 7, of cases with entries of all sizes in both, without noise."""
    with patch.object(noise, "cubes", lambda epsilon, width, n, source: np.zeros((n, width), dtype=np.int64)):
        asked = curator(raw).events.cube_sums(unbounded, 2, 7, 1, alphabet=ALPHABET, codings=CODINGS)
    return asked.reshape(2, 7)


@pytest.mark.slow
@given(raw=cases, extra=case)
def test_one_case_changes_each_number_of_one_row_by_one_at_most(raw: list[Case], extra: Case) -> None:
    difference = in_rows([*raw, extra]) - in_rows(raw)
    resolution = steps_of_cubes(7, Fraction(1))
    assert np.abs(difference).max() <= resolution
    assert difference.any(axis=1).sum() <= 1
    with patch("veilog.privacy.cases._BLOCK", 3):
        assert np.array_equal(in_rows([*raw, extra]), sum(in_rows([one]) for one in [*raw, extra]))


@given(width=st.integers(1, 4), epsilon=st.sampled_from(["0.3", "2"]), data=st.data())
def test_noise_of_cubes_tells_logs_apart_by_no_more_than_epsilon(width: int, epsilon: str, data: st.DataObject) -> None:
    """Evidence of any answer, by a sign in each number of one row, is within epsilon."""
    numbers = st.lists(st.integers(-9, 9), min_size=2 * width, max_size=2 * width)
    answer, exact = (np.array(data.draw(numbers)) for _ in range(2))
    signs = st.lists(st.integers(-1, 1), min_size=width, max_size=width)
    apart = np.array([*data.draw(signs), *[0] * width])
    mechanism = CubeNoise(1 / Fraction(epsilon), width)
    assert abs(evidence_of_numbers(mechanism, answer, exact, exact + apart)) <= float(epsilon) + 1e-9


TABLES = ([3, 0, 0], [0, 2, 1, 0], [0, 5])


def several(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every case in all cells of its events, and in some cells more than once."""
    rows = np.concatenate([block.owners, np.arange(len(block))])
    columns = np.concatenate(
        [block.codes + 1 + 3 * (block.attributes["colour"] + 1), 7 + (block.attributes["kind"] + 1)]
    )
    return rows, columns, np.full(len(rows), 4, dtype=np.int64)


def scores(raw: list[Case], features: Any = several, tables: Any = TABLES, less: Any = (0, 1, -2)) -> np.ndarray:
    """Return the numbers of which the largest is sought."""
    with patch.object(NoisyMaximum, "largest", lambda self, numbers, source: numbers):
        asked = curator(raw).events.most_apart(features, tables, less, 1, alphabet=ALPHABET, codings=CODINGS)
    return np.asarray(asked)


@pytest.mark.slow
@given(raw=cases, extra=case)
def test_one_case_changes_how_far_each_table_is_apart_by_one(raw: list[Case], extra: Case) -> None:
    difference = scores([*raw, extra]) - scores(raw)
    assert len(difference) == len(TABLES) and np.abs(difference).max() <= 1


@pytest.mark.slow
@given(raw=cases)
def test_tables_are_counted_case_by_case(raw: list[Case]) -> None:
    nothing = tuple([0] * len(table) for table in TABLES)
    with patch("veilog.privacy.cases._BLOCK", 3):
        together = scores(raw, tables=nothing, less=(0, 0, 0))
    assert np.array_equal(together, sum(scores([one], tables=nothing, less=(0, 0, 0)) for one in raw))


@given(
    widths=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 11), st.integers(-1, 2)), max_size=12),
)
def test_of_each_table_the_first_cell_of_a_case_that_has_a_value_above_0_counts(
    widths: list[int], entries: list[tuple[int, int, int]]
) -> None:
    table = np.repeat(np.arange(len(widths)), widths)
    given_ = [(row, column % len(table), value) for row, column, value in entries]
    rows, columns, values = (np.array([e[i] for e in given_], dtype=np.int64) for i in range(3))
    cells: dict[tuple[int, int], int] = {}
    for row, column, value in given_:
        if value > 0:
            place = (row, int(table[column]))
            cells[place] = min(column, cells.get(place, column))
    assert sorted(_firsts(rows, columns, values, table).tolist()) == sorted(cells.values())


def test_tables_that_cannot_be_held_or_coded_are_refused_uncharged() -> None:
    def cells(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.arange(len(block)), np.zeros(len(block), dtype=np.int64), np.ones(len(block), dtype=np.int64)

    asker = curator([("u", [("a", 0, "x", 1.0)])])
    with patch("veilog.privacy.contributions.LARGEST_SIZE", 5):
        for tables in ([[]], [[0, 0], [0, 0], [0, 0]]):
            with refused(ParameterError, "contributions-sums-too-large", "map-number-not-whole"):
                asker.events.most_apart(cells, tables, [0] * len(tables), 1)
        with refused(ParameterError, "attribute-range-not-numbers"):
            asker.events.most_apart(cells, [[0]], [0], 1, codings=[Coding("colour", edges=(0.0, 1.0))])
        assert not asker.contacted
        assert asker.events.most_apart(cells, [[0, 0, 0, 0, 0]], [0], 1) == 0
        assert asker.events.most_apart(cells, ([0, 0], [0, 0], [0]), (0, 0, 10**6), 1000) in (0, 1)
    asker.events.most_apart(cells, [[0]], [0], 1, codings=[Coding("colour", ("x",))])
    assert [charge.question for charge in asker.charges] == ["most apart"] * 3
    assert "columns-from-log" in {condition.code for condition in asker.guarantee().conditions}


def test_the_table_that_is_most_apart_is_named() -> None:
    raw: list[Case] = [("w", [("a", None, None, None)])] * 20

    def cells(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kind = block.attributes["kind"]
        one = np.ones(2 * len(block), dtype=np.int64)
        return np.tile(np.arange(len(block)), 2), np.concatenate([kind, 2 + kind]), one

    tables = ([20, 0], [10, 10])
    assert scores(raw, cells, tables, (0, 0)).tolist() == [0, 20]
    asker = curator(raw).events
    assert asker.most_apart(cells, tables, (0, 0), 50, codings=CODINGS) == 1
    assert asker.most_apart(cells, tables, (0, 40), 50, codings=CODINGS) == 0
    with refused(ParameterError, "tables-offsets-not-matching"):
        asker.most_apart(cells, tables, (0,), 1, codings=CODINGS)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(3)])
def test_the_place_of_a_noisy_maximum_costs_epsilon_and_is_as_likely_as_said(epsilon: Fraction) -> None:
    """A noisy maximum keeps epsilon, by exact probabilities over scores of neighbours."""
    mechanism = NoisyMaximum(Laplace(2 / epsilon))
    given = [np.array(one) for one in ((0, 0, 0), (1, 0, 2), (3, 3, 0))]
    for one in given:
        for change in itertools.product((-1, 0, 1), repeat=3):
            found = [evidence_of_maximum(mechanism, i, one, one + np.array(change)) for i in range(3)]
            assert max(np.abs(found)) <= float(epsilon) + 1e-9
    source = noise.seeded(3)
    drawn = np.bincount([mechanism.largest(given[1], source) for _ in range(3000)], minlength=3) / 3000
    certain = np.array([10**6, 0, 0])  # the first place, with probability 1
    first = np.exp(evidence_of_maximum(mechanism, 0, certain, given[1]))
    assert drawn[0] == pytest.approx(first, abs=0.04)


@pytest.mark.slow
@given(raw=cases, extra=case)
def test_one_case_changes_each_number_of_distinct_values_by_one(raw: list[Case], extra: Case) -> None:
    with noise_off():
        for name in ("colour", "kind"):
            with_it = np.array(curator([*raw, extra]).events.distinct(name, 1))
            without = np.array(curator(raw).events.distinct(name, 1))
            assert np.abs(with_it - without).sum() <= 2
            assert (with_it >= without).all()


@pytest.mark.slow
@given(raw=cases, extra=case, most=st.integers(1, 3), above=st.integers(0, 4))
def test_one_case_changes_the_selection_of_few_values(raw: list[Case], extra: Case, most: int, above: int) -> None:
    with noise_off(), patch.object(noise, "tsgd_bound", lambda epsilon, delta: above):
        for name in ("colour", "kind"):
            with_it = set(curator([*raw, extra]).events.frequent_values(name, most, 1, 0.1))
            without = set(curator(raw).events.frequent_values(name, most, 1, 0.1))
            assert without <= with_it
            assert len(with_it - without) <= most


listed_twice = st.lists(st.tuples(st.integers(0, 4), st.lists(st.none() | st.integers(0, 4), max_size=3)), min_size=1)
"""Places in ``LISTED`` of each case's own attribute and of its events' attributes."""
LISTED = ["x", "y", "x", None, "y"]


def in_one_list(raw: list[tuple[int, list[int | None]]], values: list[str | None], pieces: int = 1) -> EventLog:
    """Return a log whose texts are places in one list, as Arrow keeps them, in chunks."""
    log = log_of([(None, [("a", 0, None, None)] * len(places)) for _, places in raw])
    chosen = [[place for _, places in raw for place in places], [place for place, _ in raw]]
    columns = []
    for places in chosen:
        parts = [part.tolist() for part in np.array_split(np.array(places, dtype=object), pieces)]
        arrays = [pa.DictionaryArray.from_arrays(pa.array(p, pa.int8()), pa.array(values, pa.string())) for p in parts]
        columns.append(pa.chunked_array(arrays))
    at = log.events.column_names.index("colour")
    return EventLog(
        log.events.set_column(at, "colour", columns[0]),
        log.cases.set_column(log.cases.column_names.index("kind"), "kind", columns[1]),
    )


@pytest.mark.parametrize("pieces", [1, 3])
@given(raw=listed_twice, most=st.integers(1, 3), above=st.integers(0, 4))
def test_a_text_that_a_dictionary_holds_twice_is_one_value(
    pieces: int, raw: list[tuple[int, list[int | None]]], most: int, above: int
) -> None:
    """Texts that a dictionary holds twice have the answers of texts written out."""
    twice, answers = in_one_list(raw, LISTED, pieces), []
    written = [twice.events, twice.cases]
    for i, table in enumerate(written):
        for name in {"colour", "kind"} & set(table.column_names):
            texts = pa.array(table.column(name).to_pylist(), pa.string())
            table = table.set_column(table.column_names.index(name), name, texts)
        written[i] = table
    with noise_off(), patch.object(noise, "tsgd_bound", lambda epsilon, delta: above):
        for log in (twice, EventLog(*written)):
            events = Curator(log.variants, log=log).events
            codings = [Coding(name, ("y", "x"), others=True) for name in ("colour", "kind")]
            blocks = [
                {n: c.tolist() for n, c in b.attributes.items()} for b in RawCases(log, Domain()).blocks((), codings)
            ]
            found = [(events.frequent_values(n, most, 1, 0.1), events.distinct(n, 1)) for n in ("colour", "kind")]
            answers.append((blocks, found))
    assert answers[0] == answers[1]


def test_one_case_with_a_second_spelling_of_a_value_in_the_dictionary_changes_its_count_by_one() -> None:
    for values in (["x", "x"], ["x", None]):
        for extra in ([], [(1, [1])]):
            log = in_one_list([(0, [0])] * 200 + extra, values)
            for name in ("colour", "kind"):
                assert Curator(log.variants, log=log).events.frequent_values(name, 1, 1, "1e-6") == ("x",)


def test_activities_that_a_dictionary_holds_twice_are_one() -> None:
    log = in_one_list([(0, [0, 1]), (0, [2]), (0, [0])], ["x", "y", "x"])
    at = log.events.column_names.index("concept:name")
    log = EventLog(log.events.set_column(at, "concept:name", log.events.column("colour")), log.cases)
    assert log.variants.to_dict() == {("x",): 2, ("x", "y"): 1}
    (block,) = RawCases(log, Domain(activities=("x",))).blocks(("x", "y"))
    assert block.codes.tolist() == [0, 0, 0]


@pytest.mark.slow
def test_a_single_value_is_released_with_probability_delta() -> None:
    """A single value is released with probability delta; false-alarm rate 1e-4.

    As for partitions, epsilon and delta are divided by the number of values that a case may add.
    """
    raw: list[Case] = [("u", [])]
    source = noise.seeded(5)
    k = noise.tsgd_bound(Fraction(1, 2), Fraction(1, 10))
    chance = float(noise.tsgd_tail(Fraction(1, 2), k)(60)[0]) / 2**60
    hits = sum(len(curator(raw, randomness=source).events.frequent_values("kind", 2, 1, "0.2")) for _ in range(2000))
    assert chance <= 0.1
    assert stats.binomtest(hits, 2000, chance).pvalue > 1e-4


def test_a_value_beyond_those_counted_is_never_released() -> None:
    raw: list[Case] = [(None, [("a", 0, "x", 1.0), ("a", 1, "y", 1.0)])] * 200
    for seed in range(20):
        asked = curator(raw, randomness=noise.seeded(seed)).events
        assert asked.frequent_values("colour", 1, 1, "1e-3") == ("x",)


def test_features_see_public_codes_only() -> None:
    """Features see no labels, names or counts; other activities and values are -1."""
    seen: list[Cases] = []

    def look(block: Cases) -> tuple[list[int], list[int], list[int]]:
        seen.append(block)
        return [], [], []

    raw: list[Case] = [("w", [("a", 5, "x", 3.0), ("d", None, "z", None)]), ("u", [])]
    curator(raw).events.sums(look, 1, 1, 1, alphabet=ALPHABET, codings=CODINGS)
    block = seen[0]  # the others are parts of it, shown again
    assert block.codes.tolist() == [1, -1]
    assert block.times.tolist() == [5_000_000, UNKNOWN_TIME]
    assert block.offsets.tolist() == [0, 2, 2]
    assert {k: v.tolist() for k, v in block.attributes.items()} == {"colour": [1, -1], "size": [0, -1], "kind": [0, -1]}
    assert set(vars(block)) == {"codes", "times", "offsets", "attributes", "of_events"}


@pytest.mark.slow
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_numbers_beyond_the_declared_range_count_at_its_ends(numbers: list[float]) -> None:
    seen: list[Cases] = []
    raw: list[Case] = [(None, [("a", 0, None, x)]) for x in numbers]
    coding = Coding("size", edges=(0.0, 1.0, 4.0, 9.0))
    curator(raw).events.sums(lambda b: seen.append(b) or ([], [], []), 1, 1, 1, codings=[coding])
    expected = [0 if x < 1 else 1 if x < 4 else 2 for x in numbers]
    assert seen[0].attributes["size"].tolist() == expected


def test_a_charge_says_what_was_asked() -> None:
    asker = curator([("u", [("a", 0, "x", 1.0)])])
    asker.events.sums(lambda b: ([], [], []), 4, 9, "0.6", resolution=16, purpose="gaps")
    asker.events.distinct("kind", "0.1")
    asker.events.frequent_values("kind", 3, "0.3", "1e-6")
    guarantee = asker.guarantee()
    assert guarantee.epsilon == 1.0
    tenth, third = Fraction(1, 10), Fraction(1, 3 * 10**6)
    assert guarantee.delta == round_up(3 * noise.tsgd_failure(tenth, noise.tsgd_bound(tenth, third))) <= 1e-6
    assert [str(c.plain().sensitivity) for c in guarantee.charges] == [
        "9 (L1, clipped)",
        "2 (L1)",
        str(Message("sensitivity-values", by=3)),
    ]
    assert guarantee.charges[0].plain().mechanism == Message("noise-laplace-in-steps", scale="9/epsilon", grid=16)


def test_with_a_delta_sums_of_events_have_the_noise_that_it_pays_for() -> None:
    asker = curator([("u", [("a", 0, "x", 1.0)])])
    asker.events.sums(lambda b: ([], [], []), 4, 9, "0.6", delta="1e-6", resolution=16)
    (charge,) = asker.guarantee().charges
    assert (charge.mechanism, "L2") == noise_of_sums(9, 16, Fraction(3, 5), Fraction(1, 10**6))
    assert (charge.epsilon, charge.delta) == (Fraction(3, 5), Fraction(1, 10**6))


# Several queries that are charged together ---------------------------------------------------------------------------


@pytest.mark.slow
@given(raw=cases, extra=case, bound=st.integers(1, 9), resolution=st.sampled_from([1, 7, EventRounds.UNIT // 9]))
def test_one_case_changes_each_of_several_sums_by_no_more_than_the_noise_is_made_for(
    raw: list[Case], extra: Case, bound: int, resolution: int
) -> None:
    """The bound holds for both of two sums, of which the second has other units."""

    def twice(log: list[Case]) -> list[np.ndarray]:
        with noise_off():
            rounds = curator(log).events.rounds([Fraction(1), Fraction(3)], 1, "1e-6")
            given_ = {"alphabet": ALPHABET, "codings": CODINGS}
            first = rounds.sums(unbounded, SIZE, bound, resolution=resolution, **given_)
            return [first, rounds.sums(unbounded, SIZE, 2 * bound, resolution=max(1, resolution // 2), **given_)]

    for one, other in zip(twice([*raw, extra]), twice(raw), strict=True):
        assert sum(int(value) ** 2 for value in one - other) <= EventRounds.UNIT**2


@pytest.mark.slow
@pytest.mark.parametrize("weights", [[1], [1, 7, 1, 40], [1] * 12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_sums_that_are_paid_for_together_cost_no_more_than_is_charged_by_another_accountant(
    weights: list[int], epsilon: float
) -> None:
    """Sums that are charged together cost no more by another accountant.

    Noise so wide is as good as continuous; all that a case may add is ``UNIT``.
    """
    asked = curator([(None, [])])
    rounds = asked.events.rounds([Fraction(weight) for weight in weights], epsilon, "1e-6")
    whole = pld.identity(1e-4)
    for one in rounds.noises:
        multiplier = one.variance**0.5 / EventRounds.UNIT
        loss = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4, use_connect_dots=True)
        whole = whole.compose(loss)
    assert 0.98 * epsilon < whole.get_epsilon_for_delta(1e-6) <= epsilon * 1.0001 + 1e-5


def test_sums_that_are_paid_for_together_are_charged_once_and_have_their_noise() -> None:
    asked = curator([(None, [])])
    rounds = asked.events.rounds([Fraction(1), Fraction(4)], Fraction(1, 2), Fraction(1, 10**6))
    (charge,) = asked.charges
    assert (charge.question, charge.epsilon, charge.delta) == ("event rounds", Fraction(1, 2), Fraction(1, 10**6))
    nothing = lambda block: (np.zeros(0, int),) * 3  # noqa: E731
    for wrong in ((EventRounds.UNIT + 1, 1), (1, EventRounds.UNIT + 1), (2**13, 2**12)):
        with refused(ParameterError, "contributions-steps-too-large"):
            rounds.sums(nothing, 5, wrong[0], resolution=wrong[1])
    drawn = [rounds.sums(nothing, 4000, 3) for _ in range(2)]
    for answer, one in zip(drawn, rounds.noises, strict=True):
        assert stats.kstest(answer / one.variance**0.5, "norm").pvalue > 1e-6
    assert drawn[0].std() == pytest.approx(2 * drawn[1].std(), rel=0.1)
    with refused(ParameterError, "questions-used-up"):
        rounds.sums(nothing, 5, 3)
    assert asked.charges == (charge,)


def test_noise_has_the_scale_that_is_charged() -> None:
    asked = curator([("u", [])], randomness=noise.seeded(2)).events
    drawn = asked.sums(lambda b: ([], [], []), 40_000, 3, 1, resolution=8)
    assert np.abs(drawn).mean() == pytest.approx(24, rel=0.03)


@pytest.mark.parametrize("features", [lambda b: ([0], [0], [0.5]), lambda b: ([0], [0, 1], [1]), lambda b: [1 // 0]])
def test_features_that_fail_are_charged_and_say_nothing(features: Any) -> None:
    asker = curator([("u", [])])
    with refused(ParameterError, "question-function-failed") as caught:
        asker.events.sums(features, 2, 1, 1)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [c.epsilon for c in asker.guarantee().charges] == [1]


@pytest.mark.parametrize(
    ("features", "sums"),
    [
        (lambda b: ([0], [9], [1]), [0, 0]),
        (lambda b: ([9], [0], [1]), [0, 0]),
        (lambda b: ([0], [0], [2**40]), [1, 0]),
    ],
)
def test_features_outside_their_vectors_are_none_and_large_ones_are_cut(features: Any, sums: list[int]) -> None:
    with noise_off():
        assert curator([("u", [])]).events.sums(features, 2, 1, 1).tolist() == sums


def test_variants_alone_have_no_events() -> None:
    log = log_of([("u", [("a", 0, "x", 1.0)])])
    with refused(ParameterError, "question-extras-of-variants"):
        _ = Curator(log.variants).events
    with refused(ParameterError, "variants-not-of-log"):
        Curator(log_of([("u", []), ("v", [])]).variants, log=log)


def test_the_window_is_declared_or_a_condition() -> None:
    raw: list[Case] = [("u", [("a", 3 * 86_400 + 5, None, None)]), ("u", [("a", 86_400, None, None)]), ("v", [])]
    taken = curator(raw)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert taken.events.window == (epoch + datetime.timedelta(days=1), epoch + datetime.timedelta(days=4))
    assert [c.code for c in taken.guarantee().conditions] == ["window-from-log"]
    window = (epoch, epoch.replace(year=1980))
    declared = curator(raw, domain=Domain(window=window))
    assert declared.events.window == window
    assert declared.guarantee().conditions == ()


def test_the_columns_of_a_log_are_a_condition() -> None:
    asker = curator([("u", [("a", 0, "x", 1.0)])])
    assert (asker.events.level("colour"), asker.events.level("kind")) == ("event", "case")
    assert (asker.events.kind("size"), asker.events.kind("kind")) == ("number", "text")
    assert [c.code for c in asker.guarantee().conditions] == ["columns-from-log"]
    for name in ("nothing", "concept:name", "time:timestamp", "case:index"):
        with refused(ParameterError, "pripel-attribute-missing"):
            asker.events.level(name)


@pytest.mark.parametrize(
    "values", [(), ("a", "a"), (1.0, 1.0), (2, 1), ("a", 1), (0.0, float("inf")), "abc", (1, 2, 3)]
)
def test_a_nonsensical_attribute_domain_is_refused(values: Any) -> None:
    with pytest.raises(ParameterError):
        Domain(attributes={"kind": values})


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    epoch = datetime.datetime(1970, 1, 1)
    with refused(ParameterError, "window-ends-before-start"):
        Domain(window=(epoch, epoch))


def test_a_range_for_an_attribute_without_numbers_is_refused_uncharged() -> None:
    asker = curator([("u", [("a", 0, "x", 1.0)])])
    with refused(ParameterError, "attribute-range-not-numbers"):
        asker.events.sums(lambda b: ([], [], []), 1, 1, 1, codings=[Coding("colour", edges=(0.0, 1.0))])
    assert asker.charges == ()


def test_dates_are_days_since_the_start_of_their_case() -> None:
    day = 86_400
    log = log_of([("u", [("a", 10 * day, None, None), ("b", 12 * day, None, None)]), ("v", [("a", None, None, None)])])
    due = pa.array([11 * day, 10 * day, 3], pa.int64()).cast(pa.timestamp("s"))
    log = EventLog(
        log.events.append_column("due", due),
        log.cases.append_column("born", pa.array([0, None], pa.int32()).cast(pa.date32())),
    )
    codings = (Coding("due", edges=(-1.0, 0.5, 1.5, 9.0)), Coding("born", edges=(-20.0, -10.5, -9.5, 0.0)))
    (block,) = RawCases(log, Domain()).blocks(("a",), codings)
    assert block.attributes["due"].tolist() == [1, 0, -1]
    assert block.attributes["born"].tolist() == [1, -1]
    (block,) = RawCases(log, Domain.of(["b"])).blocks(("b",), codings)
    assert block.attributes["due"].tolist() == [0]
    assert block.attributes["born"].tolist() == [0, -1]


def test_what_events_hold_is_also_found_as_that_of_a_case() -> None:
    log = log_of([("u", [("a", 1, "x", 2.0)])])
    assert attribute_level(log, "case:colour") == attribute_level(log, "colour") == "event"
    assert attribute_level(log, "case:kind") == "case"
    (block,) = RawCases(log, Domain()).blocks(("a",), (Coding("case:colour", ("y",), others=True),))
    assert block.attributes["case:colour"].tolist() == [1]


@pytest.mark.parametrize("edges", [[0.0, 1.0], [-3.0, 0.0, 1e-9, 2.5, 1e6], [0.0, 1e-320], [-1e308, 1.0, 1e308]])
def test_many_numbers_fall_into_the_bins_that_a_search_finds(edges: list[float]) -> None:
    rng = np.random.default_rng(4)
    numbers = np.concatenate(
        [rng.uniform(-1, 3, 40_000), edges, np.nextafter(edges, -np.inf), [np.inf, -np.inf, 1e300]]
    )
    wanted = np.searchsorted(edges, numbers, side="right") - 1
    assert np.array_equal(_last_below(numbers, np.array(edges)), wanted)
