"""Amun on a log that is kept on disk gives, from the same seed, the release that it gives in memory."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openly
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veilog
from veilog import Domain
from veilog.errors import EngineError, InputError, ParameterError, VeilogError
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.logs.made_up.simulate import hospital
from veilog.logs.metadata import Metadata
from veilog.logs.stored.disk import keep
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Sequences
from veilog.methods._events.assemble import Details, assembled
from veilog.methods._sampling import times as amun_times
from veilog.methods._sampling.transitions import LARGEST_RELEASE, annotated
from veilog.methods.amun import stored as amun_stored
from veilog.methods.amun.priors import Precision, prior_knowledge
from veilog.report import write as write_report

MODES = ("sampling", "filtering", "oversampling")
SECOND = 1_000_000

CASES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3 * 10**5)), max_size=5), min_size=1, max_size=15
)
SIZES = st.integers(1, 12)


def log_of(cases: list[list[tuple[str, int]]]) -> EventLog:
    """A log from cases of (activity, seconds)."""
    labels = tuple(sorted({activity for case in cases for activity, _ in case}))
    codes = np.array([labels.index(a) for case in cases for a, _ in case], dtype=np.int32)
    times = np.array([t * SECOND + 7 for case in cases for _, t in case], dtype=np.int64)
    return assembled(Details(Sequences(labels, codes, np.cumsum([0, *map(len, cases)])), times), Metadata())


def in_pieces(log: EventLog, size: int) -> StoredLog:
    """So many cases a piece, each with labels and codes of its own."""

    def pieces() -> Iterator[EventLog]:
        bounds = [*range(0, log.cases.num_rows, size), log.cases.num_rows]
        for first, last in itertools.pairwise(bounds):
            part = log.only(np.arange(first, last))
            columns = [
                c.cast(pa.string()).dictionary_encode() if pa.types.is_dictionary(c.type) else c
                for c in part.events.columns
            ]
            yield EventLog(pa.table(columns, names=part.events.column_names), part.cases, source=log.source)

    found = keep(pieces())
    assert found is not None
    return found


def released(log: EventLog | StoredLog, **parameters: Any) -> veilog.Release | str:
    """The release, or why there is none."""
    try:
        return openly.release(log, "amun", as_published=True, **parameters)
    except VeilogError as error:
        return str(error)


def plain(table: pa.Table) -> dict[str, list[Any]]:
    return table.to_pydict()


def same(one: veilog.Release | str, other: veilog.Release | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    assert isinstance(one.full, EventLog) and isinstance(other.full, StoredLog)
    assert (one.variants, one.guarantee, one.remarks) == (other.variants, other.guarantee, other.remarks)
    assert one.operations == other.operations
    assert one.log.metadata == other.log.metadata
    assert plain(one.log.events) == plain(other.log.events)
    assert plain(one.log.cases) == plain(other.log.cases)
    assert one.log.events.schema == other.log.events.schema
    return True


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    CASES,
    st.sampled_from(MODES),
    st.sampled_from(["example", "equation"]),
    st.sampled_from([0.1, 0.3, 0.6]),
    st.integers(0, 5),
    SIZES,
    SIZES,
    st.sampled_from([Domain(), Domain(max_length=2), Domain(activities=("a", "c"))]),
)
def test_the_release_is_that_of_the_log_in_memory(
    cases: list[list[tuple[str, int]]],
    mode: str,
    prior: str,
    advantage: float,
    seed: int,
    size: int,
    at_once: int,
    domain: Domain,
) -> None:
    log = log_of(cases)
    asked = {"mode": mode, "prior": prior, "guessing_advantage": advantage, "seed": seed, "domain": domain}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amun_stored, "_PIECE", at_once)
        patch.setattr(amun_times, "_BLOCK", 5)
        assert same(released(log, **asked), released(in_pieces(log, size), **asked))


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("mode", MODES)
def test_so_it_is_with_hundreds_of_cases(mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And so are its files and its report."""
    monkeypatch.setattr(amun_stored, "_PIECE", 200)
    monkeypatch.setattr(amun_times, "_BLOCK", 999)
    log = hospital(400, seed=3)
    asked = {"mode": mode, "guessing_advantage": 0.4, "duration_precision": 300, "seed": 2}
    one, other = released(log, **asked), released(in_pieces(log, 70), **asked)
    assert same(one, other)
    assert isinstance(one, veilog.Release) and isinstance(other, veilog.Release)
    assert isinstance(other.full, StoredLog) and len(other.full.sizes) > 3
    if mode == "filtering":
        kept = int(one.remarks[-1].removeprefix("Filtering keeps ").partition(" ")[0])
        assert 50 < kept < 350
    for suffix in (".parquet", ".csv", ".xes.gz"):
        paths = [tmp_path / f"{name}{suffix}" for name in ("memory", "disk")]
        one.save(paths[0])
        other.save(paths[1])
        assert paths[0].read_bytes() == paths[1].read_bytes()
    if mode == "sampling":
        pages = [tmp_path / f"{name}.html" for name in ("memory", "disk")]
        for release, page in zip((one, other), pages, strict=True):
            write_report(release, page)
        assert pages[0].read_text() == pages[1].read_text()


@pytest.mark.slow
def test_progress_of_writing_is_told(tmp_path: Path) -> None:
    told: list[float | None] = []
    release = released(in_pieces(hospital(50, seed=1), 20), seed=1)
    assert isinstance(release, veilog.Release)
    release.save(tmp_path / "out.csv", progress=lambda text, fraction: told.append(fraction))
    assert told[-1] == 1


def test_a_column_of_transitions_holds_no_more_than_a_piece_and_one_transition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is loaded at once to estimate priors; every transition is in one column."""
    monkeypatch.setattr(amun_stored, "_PIECE", 150)
    seen: list[set[int]] = []

    def counted(groups: np.ndarray, *rest: Any) -> Any:
        assert len(groups) <= 150 + np.bincount(groups).max()
        seen.append(set(groups.tolist()))
        return amun_stored_priors(groups, *rest)

    amun_stored_priors = amun_stored.duration_priors
    monkeypatch.setattr(amun_stored, "duration_priors", counted)
    log = hospital(200, seed=3)
    view, _, _, _ = amun_stored.annotated_on_disk(in_pieces(log, 60), log.variants, Domain())
    known = list(amun_stored.prior_knowledge_on_disk(view, 0.2, Precision.of(1, 10)))
    assert len(seen) > 4 and sum(map(len, seen)) == len(set().union(*seen))
    whole = annotated(log, log.variants, Domain())[0]
    expected = prior_knowledge(whole, 0.2, Precision.of(1, 10))
    assert np.concatenate([k.priors for _, k in known]).tolist() == expected.priors.tolist()
    assert np.concatenate([k.ranges for _, k in known]).tolist() == expected.ranges.tolist()
    assert view.contingency.tolist() == whole.contingency.tolist()


def test_nothing_is_left_on_the_disk(tmp_path: Path) -> None:
    log = hospital(60, seed=3)
    halves = (log.only(np.arange(30)), log.only(np.arange(30, log.cases.num_rows)))
    stored = keep(halves, temp_directory=tmp_path)
    assert stored is not None
    (of_the_log,) = tmp_path.iterdir()
    release = released(stored, seed=1, mode="filtering", guessing_advantage=0.6)
    assert isinstance(release, veilog.Release) and isinstance(release.full, StoredLog)
    assert len(list(tmp_path.iterdir())) == 2, "the log and its release"
    release.full.close()
    assert list(tmp_path.iterdir()) == [of_the_log]


def test_a_disk_without_room_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = in_pieces(hospital(30, seed=3), 10)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(EngineError, match=r"No space left.*`temp_directory`"):
        openly.release(stored, "amun", as_published=True, seed=1)


@pytest.mark.slow
def test_events_without_times_are_refused_and_counted_in_all_pieces() -> None:
    log = log_of([[("a", 0), ("b", 9)]] * 12)
    kind = log.events.schema.field(TIMESTAMP).type
    times = log.events.column(TIMESTAMP).to_pylist()
    place = log.events.column_names.index(TIMESTAMP)
    for missing, said in (({3, 20}, "2 events have no timestamp"), (set(range(24)), "No event has a timestamp")):
        column = pa.array([None if i in missing else t for i, t in enumerate(times)], kind)
        with pytest.raises(InputError, match=said):
            openly.release(
                in_pieces(EventLog(log.events.set_column(place, TIMESTAMP, column), log.cases), 4),
                "amun",
                as_published=True,
            )


def test_the_largest_release_is_that_of_memory_or_ten_times_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of([[("a", 0), ("b", 9)]] * 12)
    stored = in_pieces(log, 5)
    view = amun_stored.annotated_on_disk(stored, log.variants, Domain())[0]
    assert view.most_events == LARGEST_RELEASE
    monkeypatch.setattr(amun_stored, "LARGEST_RELEASE", 30)
    assert view.most_events == 240
    monkeypatch.setattr(amun_stored, "_MOST_GROWTH", 0)
    with pytest.raises(ParameterError, match="or on the disk"):
        openly.release(stored, "amun", as_published=True, mode="oversampling", seed=1, guessing_advantage=0.01)


def test_no_name_of_the_log_is_released() -> None:
    stored = in_pieces(hospital(60, seed=3), 25)
    release = released(stored, seed=4)
    assert isinstance(release, veilog.Release)
    names = release.log.cases.column(ACTIVITY).to_pylist()
    assert names == [str(i) for i in range(1, len(names) + 1)]
    assert release.log.cases.column_names == [ACTIVITY]
    assert "org:resource" not in release.log.events.column_names
