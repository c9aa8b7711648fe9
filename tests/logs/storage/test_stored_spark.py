"""A table that stays in Spark answers queries as the log in memory and on disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openly
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused
from spark_session import spark_here

import veilog
from veilog import Domain
from veilog.errors import EngineError, InputError, ParameterError, QuestionError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import CASE_INDEX, EVENT_INDEX, EventLog
from veilog.logs.storage import spark
from veilog.logs.storage.loader import store
from veilog.logs.storage.spark import OnSpark
from veilog.logs.storage.stored_log import Chunk, Scope, StoredLog, keep
from veilog.logs.synthetic.hospital import hospital
from veilog.privacy import cases
from veilog.privacy.cases import UNKNOWN_TIME, Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.events import EventQuestions
from veilog.privacy.mechanisms import noise

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]
CODINGS = (Coding("leucocytes", edges=(0.0, 5.0, 30.0)), Coding("urgency", ("1", "2", "3")))
FACTS = Domain(attributes={"leucocytes": (0.0, 30.0)})


def plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, of which Spark knows nothing."""
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def made_up(size: int = 2500) -> pa.Table:
    """Thousands of cases, the rows in no order."""
    rows = plain(hospital(size, seed=4).to_arrow().sort_by("time:timestamp"))
    rows = rows.append_column("seq", pa.array(range(len(rows)), pa.int64()))
    return rows.take(pa.array(np.random.default_rng(1).permutation(len(rows))))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_here(tmp_path_factory.mktemp("spark")) as started:
        yield started


class Tables:
    """Tables of Spark, by their rows."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder, self.made = session, folder, 0

    def of(self, rows: pa.Table) -> Any:
        import ibis

        self.made += 1
        pq.write_table(rows, self.path, compression="none", use_dictionary=False)
        self.session.read.parquet(str(self.path)).createOrReplaceTempView(self.name)
        return ibis.pyspark.connect(self.session).table(self.name)

    @property
    def name(self) -> str:
        return f"log_{self.made}"

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.parquet"


@pytest.fixture(scope="module")
def tables(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(session, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def there(tables: Tables) -> Any:
    return tables.of(made_up())


def stored(table: Any, **options: Any) -> StoredLog:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark, "_PIECE", 4000)
        log = store(table, index="seq", where="engine", **options)
    assert log is not None
    return log


@pytest.fixture(scope="module")
def log(there: Any) -> StoredLog:
    found = stored(there)
    assert len(found.sizes) > 3 and found.number_of_cases == 2500
    return found


@pytest.fixture(scope="module")
def whole() -> EventLog:
    return veilog.read(made_up().sort_by("seq"))


@pytest.fixture(scope="module")
def on_disk(log: StoredLog) -> StoredLog:
    """The same pieces, fetched."""
    found = keep(log.pieces())
    assert found is not None
    return found


# ---- the same numbers


def asked(events: EventQuestions, labels: tuple[str, ...]) -> list[Any]:
    """Every kind of question."""

    def by_value(block: Cases) -> Any:  # in here, since workers have no such module as this
        known = block.times != UNKNOWN_TIME
        value = np.where(known, np.where(known, block.times, 0) // 10**12 % 5, 7) + block.attributes["leucocytes"]
        return block.owners, (block.codes + 1) + 20 * (block.attributes["urgency"][block.owners] + 1), value

    rounds = events.rounds([Fraction(1, 3), Fraction(2, 3)], 1, "1e-6")
    names = ("org:resource", "age group", "leucocytes")
    return [
        events.sums(by_value, 100, 9, 1, alphabet=labels[1:], codings=CODINGS, resolution=8).tolist(),
        events.sums(by_value, 100, 9, 1, delta="1e-6", codings=CODINGS).tolist(),
        *(rounds.sums(by_value, 100, bound, codings=CODINGS, resolution=4).tolist() for bound in (9, 20)),
        events.most_apart(by_value, ([30] * 50, [5] * 50), (0, 3), "0.01", codings=CODINGS),
        *(events.distinct(name, 1) for name in names),
        *(events.frequent_values(name, 2, 5, "0.1") for name in names[:2]),
        *((events.level(name), events.kind(name)) for name in names),
        events.window,
    ]


@pytest.mark.nightly
def test_every_answer_is_that_in_memory_and_on_disk(log: StoredLog, on_disk: StoredLog, whole: EventLog) -> None:
    assert log.variants == on_disk.variants == whole.variants
    curators = [
        Curator(one.variants, log=one, domain=FACTS, randomness=noise.seeded(3)) for one in (whole, on_disk, log)
    ]
    answers = [asked(curator.events, whole.variants.labels) for curator in curators]
    assert answers[0] == answers[1] == answers[2]
    assert curators[0].guarantee() == curators[2].guarantee()


@pytest.mark.nightly
def test_what_many_tasks_find_is_made_one_on_the_way(
    log: StoredLog, on_disk: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "cores", lambda _: 5)
    monkeypatch.setattr(spark, "_AT_ONCE", 2)
    assert log.only(np.arange(2400)).variants == on_disk.only(np.arange(2400)).variants


@pytest.mark.nightly
def test_a_release_is_that_of_the_log_in_memory_and_fetched(log: StoredLog, there: Any, whole: EventLog) -> None:
    fetched = store(there, index="seq")
    assert fetched is not None
    assert log.shape.events.schema == fetched.shape.events.schema
    assert log.shape.cases.schema == fetched.shape.cases.schema
    assert [finding.rule for finding in log.findings] == [finding.rule for finding in fetched.findings]
    attributes = ["urgency", "leucocytes"]
    first, *others = (
        openly.release(
            one,
            "evolve",
            epsilon=9,
            delta="1e-3",
            seed=7,
            times="0.3",
            window="log",
            attributes=attributes,
            domain=FACTS,
        )
        for one in (whole, fetched, log)
    )
    for other in others:
        assert other.guarantee == first.guarantee
        assert other.log.events.equals(first.log.events)
        assert other.log.cases.equals(first.log.cases)


@pytest.mark.nightly
def test_persons_and_parts_are_those_of_the_same_pieces_on_disk(log: StoredLog, on_disk: StoredLog) -> None:
    assert '"zones": ' in log.read_as and log.read_as == on_disk.read_as, (
        "whether times have a zone is known there, too"
    )
    options = {"unit": "age group", "max_cases": 5, "subset": "urgency=2"}
    first, second = (
        openly.release(one, "evolve", epsilon=9, seed=7, times="0.3", window="log", **options) for one in (on_disk, log)
    )
    assert first.guarantee == second.guarantee
    assert first.log.events.equals(second.log.events)
    assert first.owner_only.notes == second.owner_only.notes
    few = log.only(np.array([0, 5, 2000]))
    names = [name for piece in few.pieces() for name in piece.cases["concept:name"].to_pylist()]
    assert names == [on_disk.whole().cases["concept:name"][place].as_py() for place in (0, 5, 2000)]
    nobody = log.only(np.zeros(0, dtype=np.int64))
    assert nobody.variants.cases == 0 and list(nobody.each(lambda piece, _: len(piece))) == []


def told(log: EventLog) -> dict[str, list[Any]]:
    """Return all columns of each case but the numbers of its events."""
    columns = [name for name in log.events.column_names if name not in (EVENT_INDEX, CASE_INDEX)]
    rows, cases = log.events.select(columns).to_pylist(), log.cases.to_pylist()
    return {
        case["concept:name"]: [case, *rows[first:last]]
        for case, first, last in zip(cases, log.offsets, log.offsets[1:], strict=False)
    }


@pytest.mark.nightly
def test_what_is_left_out_mapped_or_differs_within_a_case_is_as_where_it_is_fetched(tables: Tables) -> None:
    rows = made_up().slice(0, 600)
    ward = pa.array(
        [None if i % 2 else f"ward {len(name)}" for i, name in enumerate(rows["case:concept:name"].to_pylist())]
    )
    named = pa.array([None if i in (3, 4) else name for i, name in enumerate(rows["concept:name"].to_pylist())])
    rows = rows.set_column(rows.column_names.index("concept:name"), "concept:name", named)
    naive = rows["time:timestamp"].cast(pa.timestamp("us"))
    rows = rows.set_column(rows.column_names.index("time:timestamp"), "time:timestamp", naive)
    table = tables.of(rows.append_column("case:ward", ward).append_column("it's `o.d`", ward))
    with refused(InputError, "finding-with-example", rule="event-without-activity"):
        stored(table, policies={"event-without-activity": "fail"})
    options = {"map": {"Release A": "gone", "*": "here"}}
    found, fetched = stored(table, **options), store(table, index="seq", **options)
    assert fetched is not None
    assert told(found.whole()) == told(fetched.whole())
    assert "ward" in found.shape.cases.column_names and "age group" in found.shape.cases.column_names
    assert found.findings == fetched.findings
    assert found.mapped == fetched.mapped != ()
    assert found.variants == fetched.variants


# ---- what goes wrong


@pytest.mark.nightly
def test_a_table_whose_events_nothing_orders_is_refused(tables: Tables) -> None:
    rows = made_up().slice(0, 50)
    twice = tables.of(pa.concat_tables([rows, rows.slice(0, 1)]))
    with refused(InputError, "order-events-tied", count=1):
        store(twice.drop("seq"), where="engine")
    with pytest.raises(InputError, match="the same 'seq'"):
        stored(twice)
    with refused(InputError, "rows-without-order", rule="case-without-name", count=1):
        stored(tables.of(rows.set_column(0, "case:concept:name", pa.array([""] + ["a"] * 49))))


@pytest.mark.nightly
def test_a_function_that_fails_on_a_worker_says_nothing_and_is_paid_for(log: StoredLog) -> None:
    curator = Curator(log.variants, log=log, randomness=noise.seeded(1))

    def fails(block: Cases) -> Any:
        raise ValueError(f"of {block.times[0]}")

    def ranks(block: Cases) -> Any:
        return np.arange(len(block)), np.arange(len(block)) % 7, np.ones(len(block), dtype=np.int64)

    for function, code in ((fails, "question-function-failed"), (ranks, "question-function-mixes-cases")):
        with refused(ParameterError, code) as caught:
            curator.events.sums(function, 10, 1, 1)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [charge.epsilon for charge in curator.charges] == [1, 1]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever workers are asked about events fails."""

    def breaks(*_: object) -> Any:  # in here, since workers have no such module as this
        raise KeyError("the name of a person")

    monkeypatch.setattr(cases, "contributions", breaks)


@pytest.mark.usefixtures("broken")
def test_a_worker_that_breaks_is_told_without_what_it_said_and_is_paid_for(tables: Tables) -> None:
    """A query of a broken worker spends its epsilon, and its error reveals no value.

    The log has few cases; the nightly test has the ledger of a whole release.
    """
    few = stored(tables.of(made_up(60)))
    curator = Curator(few.variants, log=few, randomness=noise.seeded(1))

    def by_activity(block: Cases) -> Any:
        return block.owners, (block.codes + 1) % 10, np.ones(len(block.owners), dtype=np.int64)

    with refused(QuestionError, "question-value-unusable") as caught:
        curator.events.sums(by_activity, 10, 1, 1)
    assert "person" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [charge.epsilon for charge in curator.charges] == [1]


@pytest.mark.nightly
@pytest.mark.usefixtures("broken")
def test_where_a_worker_breaks_all_that_a_release_reserved_is_spent(log: StoredLog, tmp_path: Path) -> None:
    kept = Ledger.open(tmp_path / "log.ledger", create=True)
    with pytest.raises(QuestionError) as caught:
        veilog.release(log, "evolve", epsilon=1, activities="log", times="0.3", ledger=kept)
    assert "person" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [account.spent[0] for account in kept.show()] == [1]


@pytest.mark.nightly
def test_a_worker_that_dies_is_told_in_one_line(log: StoredLog) -> None:
    with pytest.raises(EngineError) as caught:
        log.together(lambda piece, _: os._exit(1), lambda found: sum(found), ())
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    assert sum(log.each(lambda piece, _: piece.cases.num_rows)) == 2500, "others take its place"


@pytest.mark.nightly
def test_pieces_that_spark_counts_twice_or_not_at_all_give_no_answer(
    log: StoredLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OnSpark._cells
    for wrong in (lambda frame: frame.union(frame), lambda frame: frame.where("number > 0")):
        monkeypatch.setattr(OnSpark, "_cells", lambda self, scope, wrong=wrong: wrong(real(self, scope)))
        with refused(EngineError, "spark-cases-miscounted"):
            log.together(lambda piece, _: piece.cases.num_rows, sum, ())
        with refused(EngineError, "spark-cases-miscounted"):
            list(log.each(lambda piece, _: piece.cases.num_rows))


@pytest.mark.nightly
def test_workers_of_another_version_are_not_asked(log: StoredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(log.each(lambda piece, _: piece.cases.num_rows))
    question = log.keeper._question(lambda piece, _: piece.cases.num_rows, Scope((Chunk(0),), log.shape))
    monkeypatch.setattr(log.keeper, "_question", lambda *_: dataclasses.replace(question, version="0.0.1"))
    with refused(EngineError, "spark-worker-version-differs", asking="0.0.1"):
        log.together(lambda piece, _: one, sum)


@pytest.mark.nightly
def test_what_would_take_the_log_along_is_refused(log: StoredLog) -> None:
    with pytest.raises(EngineError, match="StoredLog"):
        log.together(lambda piece, _: log.number_of_cases, lambda found: sum(found), ())


@pytest.mark.nightly
def test_what_spark_loses_is_made_again_and_refused_if_it_is_another(tables: Tables) -> None:
    rows = made_up()
    log = stored(tables.of(rows))
    expected = log.variants
    assert len(log.sizes) > 3, "a task makes several anew"
    log.keeper._frame.unpersist()
    assert log.only(np.arange(log.number_of_cases)).variants == expected
    log.keeper._frame.unpersist()
    labels = rows["concept:name"].to_pylist()
    other = {"Discharge": "Admission"}.get(labels[0], "Discharge")[: len(labels[0])].ljust(len(labels[0]), ".")
    changed = rows.set_column(rows.column_names.index("concept:name"), "concept:name", pa.array([other, *labels[1:]]))
    pq.write_table(changed, tables.path, compression="none", use_dictionary=False)
    with refused(EngineError, "spark-table-changed"):
        log.only(np.arange(log.number_of_cases - 1)).variants  # noqa: B018
    log.close()
