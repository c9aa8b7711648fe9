"""What `info`, `release`, `compare` and `risk` say of the real logs: digests, recorded before the house was rebuilt.

    VEILOG_LOGS=FOLDER python tests/golden.py [--record] [--only REGEX] [--keep FOLDER]

Without --record it says which answers have changed. It is no test: it takes a quarter of an hour, and trainings in
floats differ between machines. An answer is JSON without what may differ between two runs (seconds, versions, paths);
its numbers are kept to 9 digits, because sums of floats differ in the last ones from machine to machine.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

DIGESTS = Path(__file__).with_name("golden.json")
LOGS = ("ccc19", "unrineweginfectie", "receipt", "sepsis", "bpic2013_incidents", "traffic_fines")
OPEN = ("--activities", "log", "--max-length", "log", "--seed", "1", "--no-ledger")
RELEASES = {
    **dict.fromkeys(("evolve", "laplace", "sacofa", "df-laplace", "sapa", "libra", "pripel"), ("--epsilon", "1")),
    **dict.fromkeys(("travas", "utravas", "travag"), ("--epsilon", "1", "--delta", "1e-4")),
    "evolve-delta": ("--epsilon", "1", "--delta", "1e-4"),
    "evolve-times": ("--epsilon", "1", "--times", "0.3", "--window", "log"),
    "tlkc": (),
    "pretsa": (),
    **{f"{name}-published": ("--as-published", "--epsilon", "1") for name in ("laplace", "df-laplace", "pripel")},
    "sacofa-published": ("--as-published", "--epsilon", "1"),
    "libra-published": ("--as-published", "--epsilon", "1", "--delta", "1e-4"),
    "amun-published": ("--as-published",),
}


def tasks() -> list[str]:
    return [f"{log} {what}" for log in LOGS for what in ("info", "risk", *(f"release {name}" for name in RELEASES))]


def answer(task: str, logs: Path) -> Any:
    """The JSON of one task; of a release also what `compare` says of it."""
    name, what, *rest = task.split()
    log = str(logs / f"{name}.xes.gz")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answer.json"
        if what != "release":
            return said([what, log, "--json", str(out)], out)
        released = str(Path(folder) / "release.xes")
        options = RELEASES[rest[0]]
        method = re.sub("-(published|delta|times)$", "", rest[0])
        found = said(["release", log, released, "-m", method, *OPEN, *options, "--no-compare", "--json", str(out)], out)
        if not Path(released).exists():
            return found
        return [found, said(["compare", log, released, "--no-models", "--json", str(out)], out)]


def said(command: list[str], out: Path) -> Any:
    from veilog.cli import main

    words = io.StringIO()
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words), contextlib.suppress(SystemExit):
        main(command)
    if not out.exists():
        told = re.sub(r"\s+", "", re.sub(r"[│╭╮╰╯─]", " ", words.getvalue()))
        return told.replace(str(out.parent), "FOLDER")
    found = json.loads(out.read_text())
    out.unlink()
    return lasting(found)


def lasting(found: Any) -> Any:
    """Without what two runs differ in."""
    if isinstance(found, dict):
        return {k: lasting(v) for k, v in found.items() if k not in {"seconds", "version", "veilog", "path", "source"}}
    if isinstance(found, list):
        return [lasting(v) for v in found]
    return float(f"{found:.9g}") if isinstance(found, float) else found


def digest(found: Any) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def run(task: str) -> tuple[str, Any, float]:
    started = time.perf_counter()
    return task, answer(task, Path(os.environ["VEILOG_LOGS"])), time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for the answers themselves")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    known: dict[str, str] = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    chosen = [task for task in tasks() if re.search(given.only, task)]
    changed = []
    with ProcessPoolExecutor(given.processes) as pool:
        for task, found, seconds in pool.map(run, chosen):
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{task.replace(' ', '-')}.json").write_text(json.dumps(found, indent=1))
            same = known.get(task) == digest(found)
            print(f"{'same' if same else 'new ' if task not in known else 'DIFF'} {seconds:6.1f} s  {task}", flush=True)
            changed += [] if same else [task]
            if given.record:
                known[task] = digest(found)
                DIGESTS.write_text(json.dumps(known, indent=1) + "\n")
    print(f"{len(chosen)} answers, {len(changed)} not as recorded")
    sys.exit(bool(changed) and not given.record)


if __name__ == "__main__":
    main()
