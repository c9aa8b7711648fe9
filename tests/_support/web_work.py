"""Work as workers may meet it: short, long, greedy, dying, or stopped on time.

A worker imports this by its name, so it is a module of its own.
"""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilog.errors import InputError, OutputError
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.privacy.account.guarantee import Guarantee
from veilog.releasing.run import release
from veilog.report.release_facts import Told
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.results import ReleasedLog, to_text
from veilog.web.jobs.worker import RESULT, Progress, WorkerTask

SMALL_LOG = 2_000
NOTHING = Guarantee(
    "none", None, None, None, None, "case", Message("not-stated"), Message("a-test"), (), (Message("a-test"),), ()
)
TOLD = Told("evolve", None, (), (), NOTHING, (), "veilog", timed=False, from_file=False)
FOREVER = 120.0


def made(**facts: Any) -> ReleasedLog:
    """Return the result of a release, of which only these facts matter."""
    sizes = {"cases": 1, "events": 0, "variants": 0, "activities": 0}
    return ReleasedLog(**{"told": TOLD, "more_charges": 0, "entry": 1, **sizes, **facts})


def work(task: WorkerTask, settings: ServerSettings, progress: Progress) -> ReleasedLog:
    """Do what the request's ``do`` names, with files and progress of the job's own."""
    out = Path(task.out)
    progress(f"working on {task.path}", 0.25)
    match task.request.form.get("do", "short"):
        case "short":
            (out / "release.xes").write_text(task.request.form.get("text", "released"))
            return made(missing=(task.name,), entry=os.getpid())
        case "long":
            time.sleep(FOREVER)
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            (out / "half.xes").write_text("half")
            progress("deaf", None)
            time.sleep(FOREVER)
        case "spins":
            while True:
                pass
        case "made, then long":
            (out / "release.xes").write_text("made")
            (out / "entry").write_text("7")
            (out / RESULT).write_text(to_text(made(missing=("so far",), entry=7)))
            progress("comparing", 0.9)
            time.sleep(FOREVER)
        case "entered, then killed":
            (out / "entry").write_text("8")
            os.kill(os.getpid(), signal.SIGKILL)
        case "mistake":
            raise InputError("The third line is wrong.", path=task.path)
        case "defect":
            raise KeyError("secret of the log")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            os.abort()
        case "exits":
            os._exit(0)
        case "greedy":
            held = []
            while True:
                held.append(b"x" * (16 << 20))
                time.sleep(0.01)
        case "refused memory":
            raise MemoryError
        case "full":
            raise OSError(28, "No space left on device")
        case "full in words":
            try:
                raise OSError(28, "No space left on device")
            except OSError as error:
                raise OutputError("The file cannot be written.", path=out) from error
        case "huge":
            return made(missing=("x" * (5 << 20),))
        case "not JSON":
            return made(told=replace(TOLD, guarantee=replace(NOTHING, epsilon=float("nan"))))
        case "release" | "release and stop" as what:
            _release(settings, progress, stop=what == "release and stop")
    return made()


def _release(settings: ServerSettings, progress: Progress, stop: bool) -> None:
    """Make a real release, which stops after some of its queries."""
    asked = 0

    def pausing(text: str, fraction: float | None) -> None:
        nonlocal asked
        asked += 1
        progress(f"asked {asked}", None)
        if stop and asked > 2:
            time.sleep(FOREVER)

    release(
        hospital(SMALL_LOG, seed=1),
        "laplace",
        epsilon=1,
        activities="log",
        depth=5,
        ledger=settings.ledger,
        progress=pausing,
    )
