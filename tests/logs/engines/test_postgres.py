"""Variants by a running Postgres equal those in memory, with a right to read only."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from ledger_tools import spent
from postgres_server import QUOTED, SECRET, Server, served
from refusals import refused

import veilog
from veilog import cli
from veilog.cli.shared.options import Grouping
from veilog.errors import EngineError, InputError, ParameterError, VeilogError
from veilog.logs import files
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.loader import group_variants
from veilog.logs.input.source import ReadOptions, Source, engine_name
from veilog.logs.storage.loader import store
from veilog.logs.synthetic.hospital import hospital

pytest.importorskip("ibis")
pytest.importorskip("psycopg")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

COLUMNS = '"case" text, activity text, time timestamptz, seq bigint'
UTC_TIMES = pa.timestamp("us", "UTC")
rows_of_logs = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "ß", "1 ", "A", "a"]),
        st.sampled_from(["a", "B", "b", "ä", "a\u0308", "A", "活動", "💊", "it's", '"', "\\x41", "{a,b}", "NULL"]),
        st.integers(-2, 2),
    ),
    min_size=1,
    max_size=25,
)


def table(rows: list[tuple[str, str, int]], time: pa.DataType = UTC_TIMES) -> pa.Table:
    case, activity, second = zip(*rows, strict=True)
    moments = pa.array(second, pa.int64()).cast(pa.timestamp("s")).cast(time)
    return pa.table(
        {"case": case, "activity": activity, "time": moments, "seq": pa.array(range(len(rows)), pa.int64())}
    )


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve all tests with a role that may only read, and a log as a file and a table."""
    with served() as running:
        word = SECRET.replace("'", "''")
        running.does(
            "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
            "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            f"CREATE ROLE reader LOGIN PASSWORD '{word}'",
            "ALTER ROLE reader SET timezone = 'Asia/Kathmandu'",
            "GRANT CONNECT ON DATABASE postgres TO reader",
            "GRANT USAGE ON SCHEMA public TO reader",
        )
        yield running


@pytest.fixture
def ward(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a log to a file and the table ``ward``, with a slow view of a minute."""
    monkeypatch.chdir(tmp_path)
    files.write(hospital(60, 1), tmp_path / "ward.parquet")
    events = pq.read_table(tmp_path / "ward.parquet").select(["case:concept:name", "concept:name", "time:timestamp"])
    events = events.append_column("seq", pa.array(range(events.num_rows)))
    server.fill(events, COLUMNS, "ward")
    sleeping = "SELECT w.* FROM (SELECT pg_sleep(60)) s, ward w"
    server.does("DROP VIEW IF EXISTS slow", f"CREATE VIEW slow AS {sleeping}", "GRANT SELECT ON slow TO reader")
    return tmp_path


def read(server: Server, name: str = "log", database: str = "postgres", **options: Any) -> veilog.Variants:
    return files.read_variants(name, engine=server.url(database=database), **{"index": "seq"} | options)


@contextmanager
def meanwhile(does: Callable[[], object]) -> Iterator[None]:
    """Run a function in another thread during the block, and raise its errors."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            does()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert failed == []


# --- the same answers ---


@pytest.mark.nightly
@settings(max_examples=8, phases=(Phase.explicit, Phase.generate))
@given(rows_of_logs, st.sampled_from(["timestamptz", "timestamp", "date"]))
def test_postgres_gives_the_variants_of_the_log_read_whole(server: Server, rows, kind: str) -> None:
    if kind == "date":
        rows = [(case, activity, 86_400 * second) for case, activity, second in rows]
    events = table(rows, UTC_TIMES if kind == "timestamptz" else pa.timestamp("us"))
    server.fill(events, COLUMNS.replace("timestamptz", kind))
    found = read(server)
    assert found == files.read(events.drop_columns(["seq"])).variants
    assert found == files.read_variants(events.drop_columns(["seq"]))


@pytest.mark.nightly
def test_what_postgres_takes_for_the_same_is_not(server: Server) -> None:
    rows = [("a", "X", 0), ("A", "x", 0), ("a", "x", 1), ("A", "X", 1), ("a ", "X", 2)]
    events = table(rows)
    server.does(
        "CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE EXTENSION IF NOT EXISTS citext",
    )
    for kind in ("text COLLATE nocase", "citext", 'text COLLATE "en-US-x-icu"', "varchar(9)"):
        server.fill(events, f'"case" {kind}, activity {kind}, time timestamptz, seq bigint')
        assert read(server) == files.read(events.drop_columns(["seq"])).variants, kind
    # Activities of the same time are distinguished by characters, too.
    server.fill(table([("1", "x", 0), ("1", "X", 0)]), '"case" text, activity citext, time timestamptz, seq bigint')
    with refused(InputError, "order-activities-tied", ties=1):
        read(server, index=None)


@pytest.mark.slow
def test_other_types_of_columns(server: Server) -> None:
    server.does("DROP TYPE IF EXISTS step CASCADE", "CREATE TYPE step AS ENUM ('b', 'a')")
    events = table([("1", "a", 0), ("1", "b", 1), ("2", "b", 1)])
    expected = {("a", "b"): 1, ("b",): 1}
    for kinds in (
        '"case" bigint, activity step, time timestamptz, seq smallint',
        '"case" numeric, activity char(1), time timestamp(0), seq int',
    ):
        server.fill(events, kinds)
        assert read(server).to_dict() == expected
    server.fill(events, COLUMNS.replace('"case" text', '"case" float8'))
    with pytest.raises(InputError, match="'case' holds float64"):
        read(server)


@pytest.mark.slow
def test_time_zones_are_instants_and_the_span_is_that_in_memory(server: Server) -> None:
    zones = [timezone(timedelta(hours=hours)) for hours in (5, 0, -3)]
    times = [
        datetime(2024, 3, 31, 1 + zone.utcoffset(None).seconds // 3600 % 12, 30, i, tzinfo=zone)
        for i, zone in enumerate(zones)
    ]
    events = pa.table(
        {"case": ["1"] * 3, "activity": list("abc"), "time": pa.array(times, UTC_TIMES), "seq": [0, 1, 2]}
    )
    server.fill(events, COLUMNS)
    there = group_variants(Source("log", ReadOptions(engine=server.url(), index="seq")), ReadRequest())
    log = files.read(events.drop_columns(["seq"]))
    assert (there.variants, there.start, there.end) == (log.variants, *log.span)


@pytest.mark.nightly
def test_ties_gaps_and_times_without_a_date_are_refused_with_how_many(server: Server) -> None:
    server.fill(table([("1", "a", 0), ("1", "b", 0), ("2", "c", 1), ("2", "c", 1)]), COLUMNS)
    with refused(InputError, "order-activities-tied", ties=1):
        read(server, index=None)
    server.does("UPDATE log SET seq = 1")
    with refused(InputError, "order-index-ties", index="seq"):
        read(server)
    for column, empty, rule in (
        ('"case"', "''", "case-without-name"),
        ("activity", "NULL", "event-without-activity"),
        ("time", "NULL", "missing-timestamp"),
    ):
        server.fill(table([("1", "a", 0), ("1", "b", 1), ("2", "c", 1), ("2", "d", 2)]), COLUMNS)
        server.does(f"UPDATE log SET {column} = {empty} WHERE seq IN (1, 3)")
        with refused(InputError, "rows-without-order", "finding-with-example", rule=rule):
            read(server, policies={rule: "keep" if rule == "case-without-name" else "fail"})
        assert read(server, policies={rule: "drop"}).to_dict() == {("a",): 1, ("c",): 1}
    for moment in ("infinity", "-infinity", "0044-03-15 BC", "20000-01-01"):
        server.does(f"UPDATE log SET time = '{moment}'")
        with refused(InputError, "times-outside-years", "finding-with-example"):
            read(server)
    server.does("TRUNCATE log")
    with pytest.raises(InputError, match="no rows"):
        read(server)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_databases_of_other_encodings(server: Server, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    server.does(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    server.does("GRANT USAGE ON SCHEMA public TO reader", database=name)
    events = table([("ß", "ä", 0), ("ß", "b", 1)])
    server.fill(events, COLUMNS, database=name)
    assert read(server, database=name).to_dict() == {("ä", "b"): 1}


@pytest.mark.slow
def test_what_others_write_meanwhile_is_not_seen(server: Server) -> None:
    server.fill(table([("1", "a", 0), ("1", "b", 1)]), COLUMNS)

    def write(step: str, fraction: float | None) -> None:
        if step == "grouping the events by case":
            server.does("INSERT INTO log VALUES ('1', 'z', '1970-01-01', 0), (NULL, NULL, NULL, NULL)")

    assert read(server, progress=write).to_dict() == {("a", "b"): 1}
    assert server.does("SELECT count(*) FROM log") == [(4,)]


@pytest.mark.slow
def test_a_table_that_python_gives_is_the_same_log(server: Server) -> None:
    import ibis

    events = table([("1", "z", 0), ("1", "a", 0), ("2", "活動", 3), ("2", "💊", -1)])
    server.fill(events, COLUMNS)
    server.does(
        "CREATE SCHEMA IF NOT EXISTS sales", "DROP TABLE IF EXISTS sales.events", "ALTER TABLE log SET SCHEMA sales"
    )
    server.does("ALTER TABLE sales.log RENAME TO events")
    expected = files.read(events.drop_columns(["seq"])).variants
    with server.owner() as connection:
        there = ibis.postgres.from_connection(connection).table("events", database="sales")
        assert files.read(there, index="seq").variants == expected
        assert files.read_variants(there.filter(there.seq >= 0), index="seq") == expected
        with connection.transaction():  # the user's own, which stays
            assert files.read_variants(there, index="seq") == expected
            connection.execute("DELETE FROM sales.events")
        assert connection.execute("SELECT count(*) FROM sales.events").fetchone() == (0,)


@pytest.mark.nightly
def test_the_command_gives_what_it_gives_of_a_file(
    server: Server, ward: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("public.ward", "--engine", server.url(), "--index", "seq")

    def results(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        assert cli.main([*arguments, "--json", "-"]) == 0
        out, err = capsys.readouterr()
        assert not leaked(out + err)
        return json.loads(out)

    info, of_table = results("info", "ward.parquet"), results("info", *there)
    for name in ("cases", "events", "activities", "variants", "start", "end"):
        assert of_table[name] == info[name], name
    knowledge = ("--background", "set", "--size", "1,2")
    drop = {"seconds"}
    risk, of_table = (
        [{k: v for k, v in row.items() if k not in drop} for row in results("risk", *log, *knowledge)["results"]]
        for log in (("ward.parquet",), there)
    )
    assert of_table == risk
    said = ("-m", "laplace", "--activities", "log", "--max-length", "log", "--epsilon", "1", "--no-compare")
    results("release", *there, "out.csv", *said, "--ledger", "ward.ledger")
    assert spent(ward / "ward.ledger") == 1
    for path in ward.rglob("*"):
        assert path.is_dir() or not leaked(path.read_bytes().decode("latin1")), path


@pytest.mark.slow
def test_a_release_has_the_bytes_of_one_from_memory(server: Server, ward: Path) -> None:
    here, there = files.read("ward.parquet"), read(server, "ward")
    domain = veilog.Domain(here.variants.labels, max_length=12)
    for method in ("evolve", "laplace"):
        for log, name in ((here, "here.csv"), (there, "there.csv")):
            released = veilog.release(log, method, epsilon=2, domain=domain, seed=3)
            files.write(released.log, ward / name, overwrite=True)
        assert (ward / "here.csv").read_bytes() == (ward / "there.csv").read_bytes()


@pytest.mark.slow
def test_times_and_attributes_are_those_of_one_file(server: Server, tmp_path: Path) -> None:
    """All columns come here, in whatever order, text without what its type adds to it."""
    rows = [("1", "z", 0), ("1", "z", 0), ("A", "ä", 3), ("a", "💊", -1), ("A", "a\u0308", 3)] * 9
    events = table(rows).append_column("case:age", pa.array([ord(case) for case, _, _ in rows]))
    events = events.append_column("ward", pa.array(["x", None, "y"] * 15))
    pq.write_table(events, tmp_path / "log.parquet")
    here = files.read(tmp_path / "log.parquet")
    kind = '"case" citext, activity char(9), time timestamptz, seq bigint, "case:age" bigint, ward varchar(3)'
    server.does("CREATE EXTENSION IF NOT EXISTS citext")
    server.fill(events.take(list(range(len(rows)))[::-1]), kind)
    there = store("log", engine=server.url(), index="seq", temp_directory=tmp_path)
    assert there is not None
    for found, wanted in ((there.whole().events, here.events), (there.whole().cases, here.cases)):
        names = [name for name in wanted.column_names if name != EVENT_INDEX]
        assert found.select(names).to_pylist() == wanted.select(names).to_pylist()
    with refused(InputError, "order-activities-tied", ties=1):
        store("log", engine=server.url())
    domain = veilog.Domain(here.variants.labels, max_length=30)
    asked = {"epsilon": 9, "domain": domain, "seed": 3, "times": "0.5", "window": "log", "attributes": ["ward"]}
    asked["allow_no_protection"] = True
    released = [veilog.release(log, "laplace", delta="0.01", **asked).log.events for log in (here, there)]
    assert released[0].equals(released[1])


@pytest.mark.nightly
def test_times_and_attributes_come_from_a_table_as_from_memory(server: Server, tmp_path: Path) -> None:
    events = table([("1", "z", 0), ("1", "a", 0), ("2", "活動", 3), ("2", "💊", -1)] * 30)
    events = events.append_column("case:ward", pa.array(["x", "x", "y", "y"] * 30))
    kinds = COLUMNS + ', "case:ward" char(3)'
    server.fill(events, kinds)
    server.does("ALTER TABLE log ADD COLUMN id uuid", "ALTER TABLE log ADD COLUMN note jsonb")
    note = '{"said": "ä"}'
    server.does(f"UPDATE log SET id = '00000000-0000-0000-0000-000000000001', note = '{note}'")
    whole = files.read(events.drop_columns(["seq"]))
    there = store("log", engine=server.url(), index="seq", temp_directory=tmp_path)
    assert there is not None
    assert (there.variants, there.whole().span) == (whole.variants, whole.span)
    assert there.whole().cases["ward"].to_pylist() == whole.cases["ward"].to_pylist()
    assert set(there.whole().events["note"].to_pylist()) == {note}
    domain = veilog.Domain(whole.variants.labels)
    one, other = (
        veilog.release(log, "evolve", epsilon=3.5, domain=domain, seed=3, times="0.3").log for log in (whole, there)
    )
    files.write(one, tmp_path / "one.csv")
    files.write(other, tmp_path / "other.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    server.does("UPDATE log SET time = 'infinity'")
    with refused(InputError, "times-outside-years"):
        store("log", engine=server.url(), index="seq", temp_directory=tmp_path)
    server.does("REVOKE SELECT ON log FROM reader")
    with refused(EngineError, "engine-role-not-permitted"):
        store("log", engine=server.url(), index="seq", temp_directory=tmp_path)


# --- rights and faults ---


def leaked(text: str) -> bool:
    return any(secret in text for secret in (SECRET, QUOTED, "pass/word"))


@pytest.mark.slow
def test_the_rights_that_are_enough_and_those_that_are_missing(server: Server) -> None:
    events = table([("1", "a", 0), ("1", "b", 1)])
    server.fill(events, COLUMNS)
    server.does("REVOKE ALL ON log FROM reader")
    with refused(EngineError, "engine-role-not-permitted"):
        read(server)
    server.does(
        'GRANT SELECT ("case", activity, time, seq) ON log TO reader', "ALTER TABLE log ADD COLUMN diagnosis text"
    )
    server.does("ALTER ROLE reader SET default_transaction_read_only = on")
    assert read(server).to_dict() == {("a", "b"): 1}
    server.does(
        "CREATE SCHEMA IF NOT EXISTS closed", "DROP TABLE IF EXISTS closed.log", "ALTER TABLE log SET SCHEMA closed"
    )
    with refused(EngineError, "engine-role-not-permitted"):
        read(server, "closed.log")
    with refused(InputError, "engine-table-missing", name="nothing"):
        read(server, "nothing")
    more = "has_database_privilege('reader', 'postgres', 'TEMP'), has_schema_privilege('reader', 'public', 'CREATE')"
    rights = server.does(f"SELECT {more}")
    assert rights == [(False, False)], "no test has had more than it says"


@pytest.mark.slow
def test_a_wrong_password_is_not_repeated_and_a_url_needs_none(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, word in (
        (server.url(password="not%2Fthis"), "not/this"),
        (f"postgres:///postgres?host={server.folder}&user=reader&password=not%2Fthis", "not/this"),
    ):
        with pytest.raises(EngineError, match="password authentication failed") as caught:
            files.read_variants("log", engine=url)
        assert word not in str(caught.value)
        assert "not%2Fthis" not in str(caught.value)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with pytest.raises(InputError, match="no table 'nothing'"):
        files.read_variants("nothing", engine=f"postgres:///postgres?host={server.folder}&user=reader")


FAULTS = {
    "cancelled": (lambda server: server.does(f"SELECT pg_cancel_backend({server.asleep()[0]})"), "cancelled there"),
    "killed": (lambda server: os.kill(server.asleep()[0], signal.SIGKILL), "ended half way"),
    "stopped": (Server.stop, "ended half way"),
}


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_query_that_ends_half_way_costs_nothing_and_leaves_nothing(
    server: Server, ward: Path, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    does, said = FAULTS[fault]
    command = ["release", "slow", "out.csv", "-m", "laplace", "--activities", "log", "--max-length", "log"]
    command += ["--epsilon", "1", "--ledger", "ward.ledger", "--engine", server.url(), "--index", "seq"]
    assert cli.main(["ledger", "set", "ward.parquet", "--ledger", "ward.ledger", "--epsilon", "2"]) == 0
    before = {path.name: path.read_bytes() for path in ward.iterdir()}
    capfd.readouterr()

    def harm() -> None:
        server.until(server.asleep, "the query did not begin")
        does(server)

    with meanwhile(harm):
        assert cli.main(command) == 1
    err = capfd.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not leaked(err)
    assert {path.name: path.read_bytes() for path in ward.iterdir()} == before
    server.again()
    assert read(server, "ward").cases == 60, "afterwards it can be had"


@pytest.mark.slow
def test_a_connection_that_dies_between_two_questions(server: Server, ward: Path) -> None:
    def end(step: str, fraction: float | None) -> None:
        if step == "grouping the events by case":
            server.does("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")

    with pytest.raises(EngineError, match="ended half way") as caught:
        read(server, "ward", progress=end)
    assert not leaked(str(caught.value))


@pytest.mark.slow
def test_ctrl_c_ends_the_query_on_the_server(server: Server, ward: Path) -> None:
    def interrupt() -> None:
        server.until(server.asleep, "the query did not begin")
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with meanwhile(interrupt), pytest.raises(KeyboardInterrupt):
            read(server, "slow")
    finally:
        signal.signal(signal.SIGINT, before)
    server.until(lambda: not server.asleep(), "the query goes on")


# --- without a server ---


@pytest.mark.parametrize(
    "url",
    [
        "postgres://me:se/cret@127.0.0.1:1/db",
        "postgres://me:1?secret@127.0.0.1/db",
        "postgresql://me:1#secret@127.0.0.1/db",
        "postgres://me:[secret@127.0.0.1:1/db",
        "postgres://me:secret@127.0.0.1:1/db",
        "postgres://127.0.0.1:1/db?password=secret",
        "postgres:/me:secret@host/db",
        "postgres:me:secret@host/db",
        "nonsense://me:secret@host/db",
    ],
)
def test_no_message_about_a_url_repeats_its_password(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((EngineError, ParameterError)) as caught:
        files.read_variants("log", engine=url)
    assert "secret" not in str(caught.value)
    assert "cret" not in str(caught.value).replace("...", "")
    assert cli.main(["release", "log", str(tmp_path / "o.csv"), "-m", "amun", "--as-published", "--engine", url])
    assert "cret" not in "".join(capsys.readouterr())
    with pytest.raises(ParameterError) as refused:
        Grouping(url).needs_events("Training")
    assert "cret" not in str(refused.value)
    assert engine_name(url) == url.partition(":")[0] + "://..."
    assert issubclass(caught.type, VeilogError)
