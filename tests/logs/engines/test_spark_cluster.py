"""Spark as a cluster: a master and two workers, one of which is killed half way."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilog
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital

PATIENCE = 120.0
PARTS = 8
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java that lives for seconds: to compile well takes longer than to run."""

# The program that a user runs on a cluster: the session is there, and veilog works in it. It has a process of its own,
# because a process has one Spark only.
START = '''
import json, os, signal, sys, threading, time
from pathlib import Path

import veilog
from pyspark.sql import SparkSession
from veilog.errors import EngineError
from veilog.ledger.ledger import Ledger

master, folder, workers = sys.argv[1], sys.argv[2], [int(pid) for pid in sys.argv[3:]]
settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": os.environ["SPARK_DAEMON_JAVA_OPTS"],
    "spark.executor.extraJavaOptions": os.environ["SPARK_DAEMON_JAVA_OPTS"],
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.files.openCostInBytes": "128MB",  # a task for each file
    "spark.local.dir": folder + "/../local",
    "spark.sql.warehouse.dir": folder + "/../warehouse",
}
builder = SparkSession.builder.master(master)
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
tracker = spark.sparkContext.statusTracker()
found = {}


def executors_of(pid):
    """A worker may have another child: what its start script left, which has ended."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return [child for child in children if "ExecutorBackend" in Path(f"/proc/{child}/cmdline").read_text()]


def kill():
    found["executors"] = executors_of(workers[0])
    for pid in (workers[0], *found["executors"]):
        os.kill(pid, signal.SIGKILL)
'''

GROUPED = (
    START
    + '''
def half_way(does):
    """Do something as soon as a stage has done some of its tasks and not all of them."""
    def watch():
        while True:
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info and info.numCompletedTasks and info.numActiveTasks:
                    found["tasks"] = [info.numCompletedTasks, info.numTasks]
                    return does()
            time.sleep(0.005)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def released():
    read = veilog.read_variants(folder, engine="spark")
    veilog.release(read, "laplace", epsilon=1, domain=veilog.Domain("log", "log"), ledger=folder + "/../log.ledger")
    return read


kept = Ledger.open(folder + "/../log.ledger", create=True)
thread = half_way(spark.sparkContext.cancelAllJobs)
try:
    released()
except EngineError as error:
    found["cancelled"] = str(error)
thread.join()
found["accounts"] = len(kept.show())

thread = half_way(kill)
read = released()
thread.join()
found["spent"] = [str(account.spent[0]) for account in kept.show()]
found["variants"] = [[list(activities), count] for activities, count in read.to_dict().items()]
spark.stop()
print(json.dumps(found))
'''
)

STORED = (
    START
    + """
import ibis
import numpy as np
from veilog.logs.storage import spark as stored_spark
from veilog.logs.storage.loader import store

stored_spark._PIECE = 2000
spark.conf.set("spark.sql.shuffle.partitions", "4")
spark.read.parquet(folder).createOrReplaceTempView("log")
log = store(ibis.pyspark.connect(spark).table("log"), index="seq", where="engine")
found["pieces"] = len(log.sizes)
released = veilog.release(log, "evolve", epsilon=1, activities="log", times="0.3", window="log", seed=1)
released.save(folder + "/../released.csv")
kill()
found["same"] = log.only(np.arange(log.number_of_cases)).variants == log.variants
spark.stop()
print(json.dumps(found))
"""
)


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a process of Spark during the block, with a file for its output."""
    import pyspark

    home = Path(pyspark.__file__).parent
    more = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": BRIEF,
    }
    said = folder / f"{name}.log"
    command = [str(home / "bin" / "spark-class"), *arguments]
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **more})
    try:
        yield process, said
    finally:
        process.terminate()  # a worker ends its executors
        process.wait(PATIENCE)


def told(said: Path, pattern: str) -> str:
    """Wait for a pattern in the output of a process, and return its group."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        match = re.search(pattern, said.read_text(errors="replace"))
        if match:
            return match[1]
        time.sleep(0.05)
    raise AssertionError(said.read_text(errors="replace"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of a master, and the processes of its two workers."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as running:
        _, said = running.enter_context(daemon(tmp_path, "master", "org.apache.spark.deploy.master.Master", *where))
        address = told(said, r"Starting Spark master at (spark://\S+)")
        workers = []
        for name in ("one", "two"):
            size = ("--cores", "1", "--memory", "512m", "--work-dir", str(tmp_path / name))
            worker = daemon(tmp_path, name, "org.apache.spark.deploy.worker.Worker", *where, *size, address)
            workers.append(running.enter_context(worker))
        for _, said in workers:
            told(said, "(Successfully registered with master)")
        yield address, [process.pid for process, _ in workers]


def run(driver: str, cluster: tuple[str, list[int]], folder: Path) -> dict[str, Any]:
    """Return the results of a driver."""
    address, pids = cluster
    command = [sys.executable, "-c", driver, address, str(folder), *map(str, pids)]
    env = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": BRIEF, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=4 * PATIENCE, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert len(found["executors"]) == 1
    return found


def in_parts(events: pa.Table, folder: Path) -> None:
    """Cases lie in several files, so that they are shuffled."""
    folder.mkdir()
    size = -(-events.num_rows // PARTS)
    for part in range(PARTS):
        rows = pa.array(range(part, events.num_rows, PARTS))
        pq.write_table(events.take(rows), folder / f"{part}.parquet", row_group_size=size)


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the executor of a worker by /proc")
def test_a_worker_that_is_killed_half_way_costs_time_and_nothing_else(
    cluster: tuple[str, list[int]], tmp_path: Path
) -> None:
    log = hospital(2000, 1)
    files.write(log, tmp_path / "log.parquet")
    in_parts(pq.read_table(tmp_path / "log.parquet").replace_schema_metadata(None), tmp_path / "parts")
    expected = files.read_variants(tmp_path / "parts")
    found = run(GROUPED, cluster, tmp_path / "parts")
    assert "cancelled" in found["cancelled"]
    assert found["accounts"] == 0, "what was cancelled costs nothing"
    completed, tasks = found["tasks"]
    assert 0 < completed < tasks
    assert found["spent"] == ["1"], "what went on after the loss of a worker is charged once"
    assert {tuple(activities): count for activities, count in found["variants"]} == expected.to_dict()


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the executor of a worker by /proc")
def test_what_workers_keep_is_released_as_the_log_in_memory_is_and_outlives_one_of_them(
    cluster: tuple[str, list[int]], tmp_path: Path
) -> None:
    rows = hospital(1500, 1).to_arrow().sort_by("time:timestamp")
    rows = rows.select(["case:concept:name", "concept:name", "time:timestamp", "cost"])
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns]
    events = pa.table([*columns, pa.array(range(len(rows)))], names=[*rows.column_names, "seq"])
    in_parts(events, tmp_path / "parts")
    found = run(STORED, cluster, tmp_path / "parts")
    released = veilog.release(
        veilog.read(events), "evolve", epsilon=1, activities="log", times="0.3", window="log", seed=1
    )
    released.save(tmp_path / "here.csv")
    assert (tmp_path / "released.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert found["pieces"] > 2
    assert found["same"], "the pieces of the worker that died were made again"
