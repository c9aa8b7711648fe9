"""Processes that share the cores take one thread each, and the caller's own settings come back."""

import os
import subprocess
import sys

import pytest

from veilog.threads import ONE_THREAD, one_thread_each


def test_processes_started_inside_see_one_thread() -> None:
    ask = "import os; print(*(os.environ[name] for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')))"
    with one_thread_each():
        said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "1"]


def test_settings_come_back_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with pytest.raises(ZeroDivisionError), one_thread_each():
        assert all(os.environ[name] == "1" for name in ONE_THREAD)
        _ = 1 / 0
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
