"""A log written in pieces reads back as the same log written at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openly
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

import veilog
from veilog.errors import OutputError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import parquet


def pieces(log: EventLog, size: int) -> Iterator[EventLog]:
    for start in range(0, log.cases.num_rows, size):
        first, last = log.offsets[start], log.offsets[min(start + size, log.cases.num_rows)]
        events = log.events.slice(first, last - first)
        column = events.column("case:index").to_numpy() - start
        events = events.set_column(events.column_names.index("case:index"), "case:index", [column])
        yield EventLog(events, log.cases.slice(start, size), log.metadata)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xes", ".xes.gz", ".csv", ".tsv.gz", ".parquet"])
def test_pieces_are_the_same_log(tmp_path: Path, suffix: str) -> None:
    log = hospital(100, seed=1)
    files.write(log, tmp_path / f"whole{suffix}")
    files.write_pieces(pieces(log, 7), tmp_path / f"pieces{suffix}")
    whole, again = veilog.read(tmp_path / f"whole{suffix}"), veilog.read(tmp_path / f"pieces{suffix}")
    assert again.events.equals(whole.events)
    assert again.cases.equals(whole.cases)
    assert again.metadata == whole.metadata
    if suffix != ".parquet":
        assert (tmp_path / f"whole{suffix}").read_bytes() == (tmp_path / f"pieces{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_case_without_events_is_refused_where_it_has_no_place(tmp_path: Path, suffix: str) -> None:
    variants = veilog.Variants.from_dict({(): 50, ("a",): 40})
    log = openly.release(variants, "travas", epsilon=10, delta=0.9, seed=1).log
    assert log.cases.num_rows > len(log) > 0
    with refused(veilog.OutputError, "cases-without-event", "parquet-cases-without-event"):
        files.write_pieces([log], tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[EventLog]:
        yield hospital(5, seed=1)
        raise KeyboardInterrupt

    for suffix in (".xes", ".csv", ".parquet"):
        with pytest.raises(KeyboardInterrupt):
            files.write_pieces(failing(), tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_a_group_that_cannot_be_written_is_told_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written while the next is made."""
    written = pq.ParquetWriter.write_table
    done: list[int] = []

    def fails(writer: pq.ParquetWriter, table: pa.Table, *arguments: Any, **options: Any) -> None:
        done.append(len(table))
        if len(done) == 2:
            raise OSError(28, "No space left on device")
        written(writer, table, *arguments, **options)

    monkeypatch.setattr(parquet, "_GROUP", 50)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fails)
    with refused(OutputError, "file-not-writable"):
        files.write_pieces(pieces(hospital(100, seed=1), 7), tmp_path / "log.parquet")
    assert done == [50, 50]
    assert list(tmp_path.iterdir()) == []
