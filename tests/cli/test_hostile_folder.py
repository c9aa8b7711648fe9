"""No command runs modules of others that lie in the folder of a log."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from xes_tools import EVENT, trace

import veilog
from veilog.logs.synthetic.hospital import hospital

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are found in /proc"),
]
COMMAND = str(Path(sys.executable).with_name("veilog"))
NEEDED = {"numpy", "pyarrow", "duckdb", "scipy", "pandas", "pm4py", "uvicorn", "rapidfuzz"}


def hostile(folder: Path, names: set[str], *packages: str) -> None:
    """Write modules that leave a trace when they run."""
    code = f"open({str(folder / 'CAUGHT')!r}, 'a').write(__name__ + '\\n')\n"
    for name in names:
        (folder / f"{name}.py").write_text(code)
    for name in packages:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(code)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    veilog.write(hospital(60, seed=1), tmp_path / "log.xes")
    hostile(tmp_path, {*sys.stdlib_module_names, *NEEDED}, "veilog")
    return tmp_path


def caught(folder: Path) -> list[str]:
    trace_of = folder / "CAUGHT"
    return trace_of.read_text().split() if trace_of.exists() else []


def run(folder: Path, *arguments: str, command: tuple[str, ...] = (COMMAND,)) -> None:
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert caught(folder) == []
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
def test_a_large_file_that_two_processes_read(folder: Path) -> None:
    padded = trace(EVENT) + " " * (1 << 15)
    (folder / "large.xes").write_text("<log>" + padded * (65 << 5) + "</log>")
    run(folder, "info", "large.xes")


@pytest.mark.nightly
def test_a_comparison_by_pm4py(folder: Path) -> None:
    pytest.importorskip("pm4py")
    run(folder, "compare", "log.xes", "log.xes", "--pm4py")


@pytest.mark.nightly
def test_an_audit(folder: Path) -> None:
    small = ("--epsilon", "1", "--delta", "0.01", "--runs", "50", "--processes", "2", "--seed", "1")
    run(folder, "audit", "travas", *small)


@pytest.mark.nightly
def test_an_experiment(folder: Path) -> None:
    (folder / "logs").mkdir()
    for name in ("one", "other"):
        shutil.copy(folder / "log.xes", folder / "logs" / f"{name}.xes")
    asked = ("--logs", "logs", "--quick", "--runs", "1", "--processes", "2", "--out", "out")
    run(folder, "experiment", "quantification-table-3", *asked)


@pytest.mark.nightly
def test_the_pages(folder: Path) -> None:
    command = [COMMAND, "serve", "--no-open", "--port", "0", "--folder", str(folder / "data"), "--workers", "1"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            until = time.monotonic() + 180
            while not (begun := loaded(server.pid)) and time.monotonic() < until and not caught(folder):
                time.sleep(0.1)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate()
    assert caught(folder) == []
    assert begun


def loaded(parent: int) -> bool:
    """Return True if a child of this process has loaded its working modules."""
    for task in Path(f"/proc/{parent}/task").glob("*/children"):
        for child in task.read_text().split():
            if "pyarrow" in Path(f"/proc/{child}/maps").read_text():
                return True
    return False


@pytest.mark.nightly
def test_the_package_run_as_a_module(tmp_path: Path) -> None:
    """Run as a module, Python itself takes a few modules from there before veilog's."""
    veilog.write(hospital(60, seed=1), tmp_path / "log.xes")
    hostile(tmp_path, {"pickle", "json", "multiprocessing", "csv", "decimal", *NEEDED})
    run(tmp_path, "info", "log.xes", command=(sys.executable, "-m", "veilog"))
