"""A session of Spark on this machine, as the command starts it, per module."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def spark_here(folder: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from veilog.logs.engines.spark import session
    from veilog.logs.input.source import ReadOptions

    interrupted = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)  # the Python of its workers
        with session(ReadOptions(memory_limit="1GB", threads=2, temp_directory=folder)) as started:
            started.conf.set("spark.sql.shuffle.partitions", "4")
            yield started
    assert signal.getsignal(signal.SIGINT) is interrupted, "Ctrl-C is ours again"
