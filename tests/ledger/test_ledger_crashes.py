"""The ledger with many writers at once, killed at any moment, and resumed runs."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import openly
import pytest
from ledger_tools import OTHER, SMALL, guarantee, spent
from refusals import refused

import veilog
from veilog.errors import BudgetError, InputError
from veilog.ledger.ledger import Ledger, Reservation


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


PROLOGUE = """
import os, sys, time, random, signal
sys.path.insert(0, sys.argv.pop())
import openly
import veilog
from veilog.errors import BudgetError
from veilog.ledger.ledger import Ledger
folder = sys.argv[1]
path = folder + "/log.ledger"
log = veilog.Variants.from_dict({("a", "b"): 3000, ("a", "c", "b"): 1200, ("a", "c", "c", "b"): 600})
"""

TOGETHER = (
    PROLOGUE
    + """
Ledger.open(path, create=True).set_budget(log, 5)
start, go = os.pipe()
children = []
for i in range(16):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(start, 1)
        try:
            openly.release(log, "laplace", epsilon=1, ledger=Ledger.open(path, patience=60)).save(f"{folder}/{i}.csv")
        except BudgetError:
            os._exit(3)
        os._exit(0)
    children.append(child)
os.close(go)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
)

KILLED = (
    PROLOGUE
    + """
kills = int(sys.argv[2])
Ledger.open(path, create=True).set_budget(log, f"{kills * 4 // 5}e-1")  # a release costs 0.1
rng = random.Random(7)
longest = 0.02
for i in range(kills):
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            openly.release(log, "laplace", epsilon="0.1", largest_log=1000 + i, ledger=path).save(f"{folder}/{i}.csv")
        except BudgetError:
            os._exit(3)
        os._exit(0)
    if i % 10:
        time.sleep(rng.uniform(0, 1.2 * longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    else:
        os.waitpid(child, 0)
        longest = time.monotonic() - began
    (account,) = Ledger.open(path).show()
    assert account.spent[0] <= account.budget[0], account.spent
    charged = {e.parameters["largest_log"]: e for e in account.entries if e.state in ("charged", "written")}
    for j in range(i + 1):
        if os.path.exists(f"{folder}/{j}.csv"):
            assert charged[1000 + j].epsilon * 10 == 1, j
states = [e.state for e in account.entries]
outputs = sum(name.endswith(".csv") for name in os.listdir(folder))
print(outputs, *(states.count(s) for s in ("reserved", "charged", "written")))
"""
)


def run_script(script: str, *arguments: object) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments), str(Path(openly.__file__).parent)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.slow
@forks
@pytest.mark.false_alarm(1e-9, "15 times: noise of 12 counts takes 4,800 cases below 850, 1e-21 (Chernoff)")
def test_sixteen_at_once_on_a_budget_for_five(tmp_path: Path) -> None:
    ends = run_script(TOGETHER, tmp_path)
    assert sorted(ends) == [0] * 5 + [3] * 11
    assert len(list(tmp_path.glob("*.csv"))) == 5
    assert spent(tmp_path / "log.ledger") == 5


@pytest.mark.slow
@forks
@pytest.mark.false_alarm(1e-9, "15 times: noise of 12 counts takes 4,800 cases below 850, 1e-21 (Chernoff)")
def test_killed_at_any_moment_no_output_is_without_its_charge(tmp_path: Path) -> None:
    kills = int(os.environ.get("VEILOG_KILLS", "15"))
    outputs, _reserved, charged, written = run_script(KILLED, tmp_path, kills)
    assert 2 <= outputs <= charged + written
    assert veilog.read(next(tmp_path.glob("*.csv"))).cases.num_rows > 0


def test_an_interrupted_run_goes_on_with_its_reservation_and_only_once(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    number = ledger.reserve(SMALL, "training", epsilon=Fraction(1)).number
    with refused(BudgetError, "ledger-reservation-not-open"):
        ledger.resume(OTHER, number)
    again = ledger.resume(SMALL, number)
    assert isinstance(again, Reservation)
    again.settle(guarantee(Fraction(1)))
    assert spent(path) == 1
    with refused(BudgetError, "ledger-reservation-not-open"):
        ledger.resume(SMALL, number)
    with refused(InputError, "ledger-entry-gone"):
        again.settle(guarantee(Fraction(1)))
