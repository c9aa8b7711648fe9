"""Reservations and their processes: idle starts, ignored locks, and parallel jobs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

import veilog
from veilog import _files
from veilog.cli import main
from veilog.errors import BudgetError, OutputError, ParameterError
from veilog.ledger import store as ledger_file
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.privacy.curator import Curator

LOG = hospital(60, seed=1)
KILLED = """
import os, signal, sys
from fractions import Fraction
import veilog
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
held = Ledger.open(sys.argv[1]).reserve(hospital(60, seed=1), "laplace", epsilon=Fraction(1), begins=True)
if sys.argv[2] == "asked":
    held.begin()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    kept = Ledger.open(tmp_path / "log.ledger", create=True)
    kept.set_budget(LOG, 1)
    return kept


def states(ledger: Ledger) -> list[str]:
    return [entry.state for entry in ledger.show()[0].entries]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not show processes")
@pytest.mark.parametrize(("how", "left"), [("never", 1), ("asked", 0)])
def test_a_start_that_was_killed_counts_only_once_it_asked(ledger: Ledger, how: str, left: int) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(ledger.path), how], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ledger.show()[0].left == (left, 0), "also where it is only read"
    if left:
        assert ledger.reserve(LOG, "laplace", epsilon=Fraction(1)).number == 2
        assert states(ledger) == ["withdrawn", "reserved"]
    else:
        with pytest.raises(BudgetError):
            ledger.reserve(LOG, "laplace", epsilon=Fraction(1))
        assert states(ledger) == ["reserved"]


def test_a_run_whose_reservation_was_given_back_asks_nothing(ledger: Ledger) -> None:
    held = ledger.reserve(LOG, "laplace", epsilon=Fraction(1), begins=True)
    curator = Curator(LOG.variants)
    curator.before_first(held.begin)
    with ledger_file.transaction(ledger.path, write=True, patience=1, waiting=None) as book:
        ledger_file.give_back(book.connection, held.number)
    for ask in (
        lambda: curator.count(1),
        lambda: curator.peek("to look"),
        lambda: curator.subsample(Fraction(1)).count(1),
    ):
        with refused(BudgetError, "ledger-reservation-gone"):
            ask()
    assert not curator.contacted


def test_a_reservation_that_another_wrote_over_is_noticed(ledger: Ledger) -> None:
    """A reservation overwritten by another writer is noticed by its mark."""
    held = ledger.reserve(LOG, "laplace", epsilon=Fraction(1), begins=True)
    assert held.holder is not None
    with refused(BudgetError, "ledger-reservation-gone"):
        replace(held, holder=replace(held.holder, mark="another")).begin()
    held.begin()
    assert ledger.show()[0].entries[0].holder is not None


def test_a_release_that_cannot_load_its_library_costs_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str) -> None:
        raise MemoryError(name)

    monkeypatch.setattr("veilog.releasing.run.importlib.import_module", failing)
    with pytest.raises(MemoryError):
        veilog.release(LOG, "travag", epsilon=1, delta="1e-3", ledger=ledger)
    assert states(ledger) == []


def test_a_release_that_fails_before_its_first_question_is_withdrawn(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("veilog.releasing.run._run_method", failing)
    with pytest.raises(MemoryError):
        veilog.release(LOG, "evolve", epsilon=1, activities=ACTIVITIES, ledger=ledger)
    assert states(ledger) == ["withdrawn"]


def test_too_little_memory_is_a_sentence_a_status_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise MemoryError

    veilog.write(LOG, tmp_path / "a.csv")
    monkeypatch.setattr("veilog.releasing.run._run_method", failing)
    asked = ["release", str(tmp_path / "a.csv"), str(tmp_path / "o.xes"), "-m", "evolve", "--epsilon", "1"]
    told = tmp_path / "o.json"
    assert main([*asked, "--activities", ",".join(ACTIVITIES), "--no-ledger", "--json", str(told)]) == 1
    assert "memory" in capsys.readouterr().err
    assert '"kind": "MemoryError"' in told.read_text()


def test_a_file_system_that_grants_a_lock_twice_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _files.locks_hold(ledger.path.parent)
    monkeypatch.setattr(_files, "_lock", lambda descriptor: True)
    with refused(OutputError, "ledger-locks-ignored"):
        ledger.reserve(LOG, "laplace", epsilon=Fraction(1))
    assert states(ledger) == []


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
static int asked(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}
#define SHIMMED(NAME) \\
    int NAME(int file, int command, ...) { \\
        va_list rest; va_start(rest, command); void *value = va_arg(rest, void *); va_end(rest); \\
        if (asked(command)) return 0; \\
        return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, #NAME))(file, command, value); \\
    }
SHIMMED(fcntl)
SHIMMED(fcntl64)
int flock(int file, int operation) { return 0; }
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="no compiler, or no such system")
def test_locks_that_do_nothing_are_noticed_in_a_process_of_their_own(ledger: Ledger, tmp_path: Path) -> None:
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    command = [sys.executable, "-c", KILLED, str(ledger.path), "asked"]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert ended.returncode == 1 and "ignores locks" in ended.stderr
    assert states(ledger) == []


ASKED = (
    "-m",
    "laplace",
    "-p",
    "depth=1",
    "--epsilon",
    "1",
    "--no-compare",
    "--quiet",
    "--activities",
    ",".join(ACTIVITIES),
)


@pytest.fixture
def ward(tmp_path: Path) -> list[str]:
    """Return the words of a nightly job, after a first release."""
    whole = hospital(240, seed=1)
    veilog.write(whole.only(np.arange(200)), tmp_path / "ward.csv")
    place = ["--ledger", str(tmp_path / "w.ledger"), "--account", "ward-7"]
    assert main(["ledger", "set", str(tmp_path / "ward.csv"), "--epsilon", "9", *place]) == 0
    words = ["release", str(tmp_path / "ward.csv"), str(tmp_path / "out.xes"), *ASKED, *place]
    assert main([*words, "--since", "2024-01-01", "--until", "2024-01-03"]) == 0
    return words


@pytest.mark.slow
@pytest.mark.false_alarm(1e-6, "empty if noise of scale 5 takes 101 cases of one first activity below 30: exp(-14)/2")
def test_three_nightly_jobs_at_once_release_the_same_days_once(ward: list[str], tmp_path: Path) -> None:
    def job(number: int) -> list[str]:
        words = [*ward[:2], str(tmp_path / f"night-{number}.xes"), *ward[3:]]
        return [sys.executable, "-m", "veilog", *words, "--since", "last", "--until", "2024-01-06"]

    jobs = [subprocess.Popen(job(n), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in range(3)]
    statuses = sorted(job.wait(timeout=300) for job in jobs)
    made = [status for status in statuses if status in (0, 6)]  # 101 cases may look as noise alone does
    assert len(made) == 1 and {*statuses} - {*made} <= {2, 3}, "the others were refused or found none left"
    (account,) = Ledger.open(tmp_path / "w.ledger").show()
    subsets = [entry.subset for entry in account.entries if entry.state == "written"]
    assert subsets == ["began=2024-01-01..2024-01-03", "began=2024-01-03..2024-01-06"]
    assert account.spent == (1, 0), "no day twice"


@pytest.mark.slow
def test_days_that_a_live_run_reserved_are_refused_and_those_of_a_dead_one_are_not(
    ward: list[str], tmp_path: Path
) -> None:
    ledger = Ledger.open(tmp_path / "w.ledger", account="ward-7")
    log = veilog.read(tmp_path / "ward.csv")
    first, second = (ledger.since_last(log, until="2024-01-06") for _ in range(2))
    held = ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=first)
    with refused(BudgetError, "span-still-being-written"):
        ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=second)
    with refused(BudgetError, "span-still-being-written"):
        ledger.since_last(log, until="2024-01-06")
    assert held.holder is not None
    gone = replace(held.holder, process=2**22 + 1).text
    with ledger_file.transaction(ledger.path, write=True, patience=1, waiting=None) as book:
        book.connection.execute("UPDATE holders SET holder = ?", (gone,))
    again = ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=second)
    with ledger_file.transaction(ledger.path, write=True, patience=1, waiting=None) as book:
        book.connection.execute("UPDATE releases SET state = 'written' WHERE release = ?", (again.number,))
    with refused(ParameterError, "span-already-released", end="2024-01-06", end_2="2024-01-06"):
        ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=second)
    with refused(BudgetError, "span-ended-meanwhile", end="2024-01-06"):
        later = replace(second, value="2024-01-03..2024-01-09")
        ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=later)


@pytest.mark.slow
def test_threads_of_one_process_release_the_same_days_once(ward: list[str], tmp_path: Path) -> None:
    ledger, log = Ledger.open(tmp_path / "w.ledger", account="ward-7"), veilog.read(tmp_path / "ward.csv")
    subset, ended = ledger.since_last(log, until="2024-01-06"), []

    def reserve() -> None:
        try:
            ledger.reserve(log, "evolve", epsilon=Fraction(1), subset=subset)
            ended.append("reserved")
        except BudgetError:
            ended.append("refused")

    threads = [threading.Thread(target=reserve) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["refused", "refused", "reserved"]
