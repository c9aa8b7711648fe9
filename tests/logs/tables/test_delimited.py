"""The bytes of delimited text are watched one read at a time, whoever reads."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from veilog.logs import files
from veilog.logs.tables.csv import Dialect, Watched


@pytest.mark.slow
def test_threads_that_read_at_once_find_no_fault_that_is_none() -> None:
    """Arrow reads ahead in threads of its own while what is left is drained: their blocks must not be mixed up."""
    data = b'case,activity,time\n1,"' + b'a\n""b' * 400_000 + b'"'
    dialect = Dialect(",", "utf-8", ("case", "activity", "time"))
    for _ in range(10):
        checked = Watched(io.BytesIO(data), dialect, Path("log.csv"))
        got: list[int] = []

        def read(checked: Watched = checked, got: list[int] = got) -> None:
            buffer = bytearray(1 << 18)
            while size := checked.readinto(buffer):
                got.append(size)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert checked.error is None
        assert sum(got) == len(data)


@pytest.mark.slow
def test_rows_are_read_in_whole_blocks_whatever_their_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.logs.tables.csv.BLOCK", 1 << 16)
    rows = [f"c{n},Ersteinschätzung {'ä' * (n % 7)},2024-01-01 00:00:{n % 60:02d}\n" for n in range(80_000)]
    path = tmp_path / "log.csv"
    path.write_text("case,activity,timestamp\n" + "".join(rows), encoding="utf-8")
    assert files.read(path).events.num_rows == 80_000
