"""The bytes of delimited text are watched one read at a time, whoever reads."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from veilog.logs.tables import delimited


def test_threads_that_read_at_once_find_no_fault_that_is_none() -> None:
    """Arrow reads ahead in threads of its own while what is left is drained: their blocks must not be mixed up."""
    data = b'case,activity,time\n1,"' + b'a\n""b' * 400_000 + b'"'
    dialect = delimited.Dialect(",", "utf-8", ("case", "activity", "time"))
    for _ in range(10):
        checked = delimited._Checked(io.BytesIO(data), dialect, Path("log.csv"))
        got: list[int] = []

        def read(checked: delimited._Checked = checked, got: list[int] = got) -> None:
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
