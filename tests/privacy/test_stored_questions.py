"""A log in pieces on disk gets the answers that it gets in memory."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import openly
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog import Domain
from veilog.errors import ParameterError
from veilog.logs.eventlog import START, EventLog
from veilog.logs.storage.stored_log import StoredLog, keep
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.methods import METHODS
from veilog.privacy.cases import UNKNOWN_TIME, Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.events import EventQuestions
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import Unit, bound_units

LOG = draw_starts(hospital(60, seed=4))
CUTS = st.sets(st.integers(1, LOG.cases.num_rows - 1), max_size=8)
DOMAINS = st.sampled_from([Domain(), Domain(max_length=4), Domain(activities=LOG.variants.labels[::2], max_length=7)])


def in_pieces(log: EventLog, cuts: set[int]) -> StoredLog:
    """Return the log in pieces with labels and codes of their own, like a file's."""
    bounds = [0, *sorted(cuts), log.cases.num_rows]

    def pieces() -> Iterator[EventLog]:
        for first, last in itertools.pairwise(bounds):
            part = log.only(np.arange(first, last))
            yield EventLog(_recoded(part.events), _recoded(part.cases), source=log.source)

    found = keep(pieces())
    assert found is not None
    return found


def _recoded(table: pa.Table) -> pa.Table:
    columns = [c.cast(pa.string()).dictionary_encode() if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def features(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features beyond the bound for some cases, of all that a case shows."""
    known = block.times != UNKNOWN_TIME
    value = np.where(known, np.where(known, block.times, 0) // 10**12 % 5, 7) + block.attributes["leucocytes"]
    return block.owners, (block.codes + 1) + 20 * (block.attributes["urgency"][block.owners] + 1), value


def rounds_of_sums(events: EventQuestions) -> list[list[int]]:
    """Return the answers of two queries that are charged together."""
    rounds = events.rounds([Fraction(1, 3), Fraction(2, 3)], 1, "1e-6")
    return [rounds.sums(features, 100, bound, codings=CODINGS, resolution=4).tolist() for bound in (9, 20)]


CODINGS = (Coding("leucocytes", edges=(0.0, 5.0, 30.0)), Coding("urgency", ("1", "2", "3")))


def moments(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return events by their starts, in parts of a case's day, and their durations."""
    began, known = block.attributes[START], block.attributes[START] != UNKNOWN_TIME
    place = np.where(known, began // 10**9 % 90, 90)
    return block.owners, place, np.where(known, np.minimum((block.times - began) // 10**6, 9), 1)


QUESTIONS: dict[str, Callable[[EventQuestions], Any]] = {
    "sums": lambda e: e.sums(features, 100, 9, 1, alphabet=LOG.variants.labels[1:], codings=CODINGS).tolist(),
    "euclidean sums": lambda e: e.sums(features, 100, 9, 1, delta="1e-6", codings=CODINGS).tolist(),
    "fine sums": lambda e: e.sums(features, 100, 9, 1, codings=CODINGS, resolution=8).tolist(),
    "sums of moments": lambda e: e.sums(moments, 100, 9, 1, codings=(Coding(START, moments=True),)).tolist(),
    "rounds of sums": lambda e: rounds_of_sums(e),
    "cube_sums": lambda e: e.cube_sums(features, 20, 5, 1, codings=CODINGS).tolist(),
    "distinct": lambda e: [e.distinct(name, 1) for name in ("org:resource", "age group", "urgency", "leucocytes")],
    "frequent values": lambda e: [e.frequent_values(name, 2, 5, "0.1") for name in ("org:resource", "age group")],
    "most apart": lambda e: e.most_apart(features, ([30] * 50, [5] * 50), (0, 3), "0.01", codings=CODINGS),
    "window": lambda e: e.window,
    "columns": lambda e: [(e.level(n), e.kind(n)) for n in ("org:resource", "age group", "leucocytes", "cost")],
    "check moments": lambda e: e.check_moments(START),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
@given(CUTS, DOMAINS, st.integers(0, 5))
@settings(max_examples=12, deadline=None)
def test_every_answer_is_that_in_memory(name: str, cuts: set[int], domain: Domain, seed: int) -> None:
    logs = (LOG, in_pieces(LOG, cuts))
    curators = [Curator(g.variants, log=g, domain=domain, randomness=noise.seeded(seed)) for g in logs]
    answers = [QUESTIONS[name](curator.events) for curator in curators]
    assert answers[0] == answers[1]
    assert curators[0].charges == curators[1].charges
    assert curators[0].guarantee() == curators[1].guarantee()


def test_every_question_is_tried() -> None:
    public = {name for name in vars(EventQuestions) if not name.startswith("_")}
    assert public == {
        "sums",
        "cube_sums",
        "sums_of_persons",  # in pieces as in memory: tests/privacy/test_histories.py
        "rounds",
        "distinct",
        "frequent_values",
        "most_apart",
        "window",
        "level",
        "kind",
        "check_moments",
        "of_subset",  # a public window by a public rule needs no data
    }


@pytest.mark.slow
@given(CUTS, st.integers(1, 3), st.integers(0, 5), st.sampled_from(["age group", "urgency"]))
@settings(max_examples=12, deadline=None)
def test_the_same_cases_of_every_person_are_chosen(cuts: set[int], most: int, seed: int, column: str) -> None:
    unit = Unit("person", most, column)
    whole = bound_units(LOG, unit, noise.seeded(seed))
    parts = bound_units(in_pieces(LOG, cuts), unit, noise.seeded(seed))
    assert isinstance(whole.log, EventLog) and isinstance(parts.log, StoredLog)
    names = [name for piece in parts.log.pieces() for name in piece.cases.column("concept:name").to_pylist()]
    assert names == whole.log.cases.column("concept:name").to_pylist()
    assert parts.variants == whole.variants


@pytest.mark.slow
@pytest.mark.parametrize("unit", [{}, {"unit": "age group", "max_cases": 5}])
def test_a_release_is_that_of_the_log_in_memory(unit: dict[str, Any]) -> None:
    made = [
        openly.release(
            log,
            "evolve",
            epsilon=30,
            delta="1e-3",
            seed=7,
            times="0.3",
            window="log",
            processing=True,
            attributes=["urgency", "leucocytes"],
            domain=Domain(attributes={"leucocytes": (0.0, 30.0)}),
            **unit,
        )
        for log in (LOG, in_pieces(LOG, {7, 30, 31}))
    ]
    assert made[0].guarantee == made[1].guarantee
    assert made[0].log.events.equals(made[1].log.events)
    assert made[0].log.cases.equals(made[1].log.cases)


@pytest.mark.parametrize("method", sorted(name for name, method in METHODS.items() if method.full_log))
def test_a_method_that_needs_all_events_says_so(method: str) -> None:
    published = not METHODS[method].certified
    arguments = {} if not METHODS[method].takes_epsilon else {"epsilon": 1}
    with refused(ParameterError, "method-log-on-disk"):
        openly.release(in_pieces(LOG, {5}), method, as_published=published, **arguments)
    curator = Curator(LOG.variants, log=in_pieces(LOG, {5}))
    with refused(ParameterError, "method-needs-memory"):
        curator.peek_log("to see")
    assert not curator.contacted


@pytest.mark.parametrize("values", [["A", "A"], ["A", None, "B"]])
def test_a_list_of_texts_that_is_not_clean_is_read_alike_in_memory_and_in_pieces(values: list[str | None]) -> None:
    """A dictionary with a repeated text or an empty place is read alike everywhere."""
    listed = pa.DictionaryArray.from_arrays(pa.array([i % len(values) for i in range(300)]), pa.array(values))
    names, times = [f"c{i}" for i in range(300)], pa.array([0] * 300, pa.timestamp("us", "UTC"))
    columns = {"case:concept:name": names, "concept:name": ["x"] * 300, "time:timestamp": times}
    read = veilog.read(pa.table({**columns, "ward": listed, "case:ward": listed}))
    assert read.events.column("ward").to_pylist() == read.cases.column("ward").to_pylist() == listed.to_pylist()
    assert read.events.column("ward").null_count == 300 // len(values) * (None in values)
    made = EventLog(read.events.set_column(4, "ward", pa.chunked_array([listed])), read.cases)
    kept = keep([made.only(np.arange(100)), made.only(np.arange(100, 300))])
    assert kept is not None
    answers = [
        Curator(log.variants, log=log).events.frequent_values(name, 1, 4, "1e-3")
        for log in (read, made, kept)
        for name in ("ward", "case:ward")
    ]
    assert answers == [tuple(dict.fromkeys(v for v in values if v))] * 6
