"""A log is opened once and sniffed once on its way from a name to a command."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused

import veilog
from veilog.cli import main
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.input import formats, loader
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.loader import group_variants, roles_of, whole
from veilog.logs.input.source import ReadOptions, Source, consumed_fraction, suffix_of
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import csv
from veilog.logs.xes import scanner

SUFFIXES = (".xes", ".xes.gz", ".csv", ".csv.gz", ".tsv", ".parquet")
_watched: list[str] = []
_opened: list[str] = []


def _hear(event: str, details: tuple[object, ...]) -> None:
    if event == "open" and _watched and isinstance(details[0], str | os.PathLike) and os.fspath(details[0]) in _watched:
        _opened.append(str(details[0]))


sys.addaudithook(_hear)


class Watch:
    """Counter of our openings, sniffings and format searches of a log."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.sniffed, self.found = path, 0, 0
        # Arrow opens a Parquet file by itself.
        original, sniff, find = pa.OSFile, csv.sniff, formats._reader_of_file

        def parquet(where: str) -> pa.OSFile:
            _opened.append(where)
            return original(where)

        def counted(source: Source) -> csv.Dialect:
            self.sniffed += 1
            return sniff(source)

        def found(source: Source) -> formats.Reader:
            self.found += 1
            return find(source)

        monkeypatch.setattr(pa, "OSFile", parquet)
        monkeypatch.setattr(csv, "sniff", counted)
        monkeypatch.setattr(formats, "_reader_of_file", found)
        _opened.clear()
        _watched[:] = [str(path)]

    @property
    def opened(self) -> int:
        return _opened.count(str(self.path))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Watch]]:
    yield lambda path: Watch(path, monkeypatch)
    _watched.clear()


@pytest.fixture(scope="module")
def log() -> EventLog:
    return hospital(60, 3)


RELEASE = (
    "-m",
    "laplace",
    "--epsilon",
    "1",
    "--activities",
    "log",
    "--max-length",
    "log",
    "--no-ledger",
    "--seed",
    "1",
)


@pytest.mark.nightly(but=3)
@pytest.mark.parametrize("command", ["info", "risk", "release", "release with times", "suggest", "convert"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_command_opens_its_log_once_and_sniffs_it_once(
    tmp_path: Path, log: EventLog, watch: Callable[[Path], Watch], suffix: str, command: str
) -> None:
    """DuckDB, which groups Parquet for risk, opens the file too; that does not count."""
    path, out = tmp_path / f"log{suffix}", str(tmp_path / "out.csv")
    veilog.write(log, path)
    arguments = {
        "info": ["info", str(path)],
        "risk": ["risk", str(path)],
        "release": ["release", str(path), out, *RELEASE],
        "release with times": ["release", str(path), out, *RELEASE, "--times", "0.3", "--window", "log"],
        "suggest": ["suggest", str(path), "--epsilon", "1", "--no-ledger"],
        "convert": ["convert", str(path), out],
    }[command]
    watched = watch(path)
    assert main(arguments) == 0
    assert watched.opened == 1
    assert watched.sniffed == (1 if suffix_of(path)[:4] in (".csv", ".tsv") else 0)
    assert watched.found == 1


@pytest.mark.slow
def test_a_file_is_opened_again_for_a_second_pass_only(tmp_path: Path, watch: Callable[[Path], Watch]) -> None:
    """Ambiguous dates in pieces need the column of times first, in a second opening."""
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,25/6/2024\n1,b,26/6/2024\n")
    watched = watch(path)
    veilog.read_variants(path)
    assert (watched.opened, watched.sniffed) == (2, 1)
    watched = watch(path)
    veilog.read_variants(path, time_format="dd/mm/yyyy")
    assert (watched.opened, watched.sniffed) == (1, 1)


def test_a_file_is_opened_again_to_say_on_which_line_something_is(
    tmp_path: Path, watch: Callable[[Path], Watch]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,2024-01-01\n1,b,soon\n")
    watched = watch(path)
    with refused(InputError, "finding-with-example"):
        veilog.read(path)
    assert (watched.opened, watched.sniffed) == (2, 1)


@pytest.mark.slow
def test_xes_that_other_processes_share_is_looked_at_once_more(
    tmp_path: Path, log: EventLog, watch: Callable[[Path], Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file to split is measured first, and each process opens it for its own part."""
    path = tmp_path / "log.xes"
    veilog.write(log, path)
    monkeypatch.setattr(scanner, "SMALLEST", 1000)
    watched = watch(path)
    assert veilog.read(path, processes=2).variants == log.variants
    assert watched.opened == 2
    watched = watch(path)
    assert veilog.read(path).variants == log.variants
    assert watched.opened == 1


def test_xes_of_an_unusual_form_is_read_again_plainly(tmp_path: Path, watch: Callable[[Path], Watch]) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes("<log><trace><string key='concept:name' value='1'/></trace></log>".encode("utf-16"))
    watched = watch(path)
    assert veilog.read(path).cases.num_rows == 1
    assert watched.opened == 2


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("size", [10, 60_000, 300_000])
def test_what_was_sniffed_is_read_again_from_its_first_byte(tmp_path: Path, suffix: str, size: int) -> None:
    """The bytes after sniffing begin with the first one, at all sizes of buffers."""
    text = ("case,activity,time\n" + "".join(f"{i},a,2024-01-01\n" for i in range(size // 16 + 1))).encode()
    path = tmp_path / f"log{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
    source = Source(path)
    assert source.begin(1 << 16) == text[: 1 << 16]
    with source.stream() as stream:
        assert stream.read(7) == text[:7]
        assert stream.read() == text[7:]
        assert consumed_fraction(stream) == 1
    with source.stream() as stream:
        assert stream.read() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_text_may_come_through_a_pipe(tmp_path: Path) -> None:
    """It can be opened once only, so nothing is read by opening it again."""
    path = tmp_path / "log.csv"
    os.mkfifo(path)
    text = "case,activity,time\n" + "".join(f"{i},a,2024-01-01\n" for i in range(20_000))
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    log = veilog.read(path)
    writer.join()
    assert log.variants.to_dict() == {("a",): 20_000}


def test_a_source_lets_go_of_a_file_that_was_only_begun(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,2024-01-01\n")
    source = Source(path)
    assert roles_of(source) is not None
    assert source._begun is not None
    stream = source._begun[1]
    del source
    assert stream.closed


@pytest.mark.slow
def test_one_source_gives_columns_log_and_variants(tmp_path: Path, log: EventLog) -> None:
    for suffix in SUFFIXES:
        path = tmp_path / f"log{suffix}"
        veilog.write(log, path)
        source = Source(path)
        roles = roles_of(source)
        assert (roles is None) == suffix.startswith(".xes")
        assert whole(source, ReadRequest()).variants == group_variants(source, ReadRequest()).variants == log.variants


@pytest.mark.parametrize(
    ("name", "suffix", "form", "packed"),
    [
        ("log.csv", ".csv", ".csv", False),
        ("LOG.CSV.GZ", ".csv.gz", ".csv", True),
        ("a.b.parquet", ".parquet", ".parquet", False),
        ("log.gz", "", "", False),
        (".csv", "", "", False),
        (".csv.gz", "", "", False),
        ("log", "", "", False),
        ("folder.d/log", "", "", False),
        ("log.csv.zip", ".zip", ".zip", False),
    ],
)
def test_the_format_is_told_by_the_end_of_the_name(name: str, suffix: str, form: str, packed: bool) -> None:
    source = Source(name)
    assert (source.suffix, source.format, source.packed) == (suffix, form, packed)


def test_a_column_that_another_file_of_the_log_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("case,activity,time\n1,a,2024-01-01\n")
    (tmp_path / "2.csv").write_text("case,activity,date\n1,b,2024-01-02\n")
    with refused(InputError, "column-missing-in-file", missing="time") as caught:
        veilog.read_variants(tmp_path)
    assert str(caught.value.path).endswith("2.csv")


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("suffix", "other"), [(".xes", "tables.parquet"), (".csv", "xes.read")])
def test_a_log_loads_the_reader_that_it_needs_and_no_engine(
    tmp_path: Path, log: EventLog, suffix: str, other: str
) -> None:
    """Reading a log imports its own reader and no engine."""
    path = tmp_path / f"log{suffix}"
    veilog.write(log, path)
    code = f"import sys, veilog; veilog.read({str(path)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "ibis", f"veilog.logs.{other}"} & set(done.stdout.split())


def test_a_table_in_memory_has_no_name(tmp_path: Path) -> None:
    source = Source(pa.table({"case": ["1"], "activity": ["a"], "time": ["2024-01-01"]}))
    assert (source.name, source.suffix, source.is_file, source.files()) == (None, "", False, (source,))


@pytest.mark.parametrize(("suffix", "limit"), [(".csv", "9KB"), (".xes", "9KB"), (".parquet", "9KB"), (".csv", None)])
def test_a_log_that_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, limit: str | None
) -> None:
    """A log beyond the given limit, or the machine's memory, is refused unread."""
    path = tmp_path / f"log{suffix}"
    veilog.write(hospital(50, seed=1), path)
    monkeypatch.setattr(loader, "_SMALL", 0)
    options = ReadOptions(memory_limit="1GB") if limit is None else ReadOptions(memory_limit=limit)
    assert len(whole(Source(path, options), ReadRequest(options))) > 0 if limit is None else True
    monkeypatch.setattr("veilog._process.machine_memory", lambda: 9_000)
    code = "memory-below-log" if limit is None else "memory-limit-below-log"
    with refused(ParameterError, code):
        whole(Source(path, options), ReadRequest(options))
