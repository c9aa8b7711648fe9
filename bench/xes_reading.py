"""How fast XES is read, as ratios against bare expat in the same run.

Makes a log of a hospital's size and habits (deterministic), then reads it in fresh processes: expat without any handler
(the least that a reader that checks well-formedness has to do), veilog with one and two processes, r4pm and pm4py where
they can be imported. CPU seconds are those of a process and its children, without its imports and with them; peak
memory is that of the largest process.

    python bench/xes_reading.py [--events 1000000] [--runs 3] [--gz] [--python-r4pm PYTHON] [--python-pm4py PYTHON]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

_PRELUDE = """
import json, os, resource, sys, time
path = sys.argv[1]

def spent():
    here, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return here.ru_utime + here.ru_stime + below.ru_utime + below.ru_stime

def report(events):
    here, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = max(here.ru_maxrss, below.ru_maxrss) / 1024
    wall = time.perf_counter() - started
    print(json.dumps({"cpu": spent() - before, "all": spent(), "wall": wall, "peak": peak, "events": events}))
"""
_START = "started, before = time.perf_counter(), spent()"

_READERS = {
    "expat, no handlers": """
import gzip
from xml.parsers import expat
START
opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
parser = expat.ParserCreate()
while data := opened.read(1 << 20):
    parser.Parse(data, False)
parser.Parse(b"", True)
report(None)
""",
    "veilog, 1 process": """
from pathlib import Path
from veilog.logs.findings import Findings
from veilog.logs.xes.read import read_xes
START
report(len(read_xes(Path(path), findings=Findings())))
""",
    "veilog, 2 processes": """
from pathlib import Path
from veilog.logs.findings import Findings
from veilog.logs.xes.read import read_xes
START
report(len(read_xes(Path(path), findings=Findings(), processes=2)))
""",
    "r4pm": """
from r4pm import df
START
report(len(df.import_xes(path)[0]))
""",
    "pm4py": """
import warnings
warnings.simplefilter("ignore")
import pm4py
START
report(len(pm4py.read_xes(path)))
""",
}

_ACTIVITIES = [
    "ER Registration", "ER Triage", "ER Sepsis Triage", "Leucocytes", "CRP", "LacticAcid", "IV Liquid", "X-ray",
    "IV Antibiotics", "Admission NC", "Admission IC", "Release A", "Release B", "Return ER", "Blood culture",
    "Consultation",
]  # fmt: skip


def write_log(path: Path, events: int) -> None:
    """A log of ``events`` events in a tenth as many cases: five attributes an event, nearly all times distinct."""
    rng = random.Random(20240229)
    written = case = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0" xes.features="nested-attributes">\n'
            '\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>\n'
            '\t<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>\n'
            '\t<classifier name="Activity" keys="concept:name"/>\n'
        )
        while written < events:
            case += 1
            lines = [f'\t<trace>\n\t\t<string key="concept:name" value="case {case}"/>\n']
            moment = datetime(2015, 1, 1, tzinfo=UTC) + timedelta(milliseconds=rng.randrange(10**11))
            for _ in range(min(rng.randint(2, 18), events - written)):
                moment += timedelta(milliseconds=rng.randrange(10**7))
                lines.append(
                    "\t\t<event>\n"
                    f'\t\t\t<string key="concept:name" value="{rng.choice(_ACTIVITIES)}"/>\n'
                    f'\t\t\t<string key="lifecycle:transition" value="{rng.choice(("start", "complete"))}"/>\n'
                    f'\t\t\t<string key="org:resource" value="Resource {rng.randrange(200)}"/>\n'
                    f'\t\t\t<date key="time:timestamp" value="{moment.isoformat(timespec="milliseconds")}"/>\n'
                    f'\t\t\t<int key="cost" value="{rng.randrange(5000)}"/>\n'
                    "\t\t</event>\n"
                )
                written += 1
            lines.append("\t</trace>\n")
            file.write("".join(lines))
        file.write("</log>\n")


def measure(python: str, code: str, path: Path) -> dict[str, float] | None:
    """CPU, wall and peak memory of one reader in a process of its own; ``None`` if it cannot be run."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "reader.py"
        script.write_text(_PRELUDE + code.replace("START", _START), encoding="utf-8")
        command = [python, str(script), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode:
        last = done.stderr.strip().splitlines()
        print(f"(left out: {last[-1] if last else done.returncode})", file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--gz", action="store_true", help="read the log compressed")
    options.add_argument("--python-r4pm", metavar="PYTHON", help="another interpreter, one that has r4pm[polars]")
    options.add_argument("--python-pm4py", metavar="PYTHON", help="another interpreter, one that has pm4py")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.xes"
        write_log(path, given.events)
        print(f"{given.events:,} events, {path.stat().st_size / 1e6:.0f} MB, median of {given.runs} runs\n")
        if given.gz:
            packed = path.with_suffix(".xes.gz")
            packed.write_bytes(gzip.compress(path.read_bytes(), 6))
            path = packed
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in _READERS}
        for _ in range(given.runs):
            for name, code in _READERS.items():
                python = {"r4pm": given.python_r4pm, "pm4py": given.python_pm4py}.get(name) or sys.executable
                found = measure(python, code, path)
                if found is not None:
                    assert found["events"] in (None, given.events), f"{name} lost events"
                    runs[name].append(found)
    print("| reader | CPU s | with imports | wall s | peak MB | CPU / expat |\n|---|---:|---:|---:|---:|---:|")
    base = statistics.median(r["cpu"] for r in runs["expat, no handlers"])
    for name, results in runs.items():
        if results:
            cpu, every, wall, peak = (statistics.median(r[k] for r in results) for k in ("cpu", "all", "wall", "peak"))
            print(f"| {name} | {cpu:.2f} | {every:.2f} | {wall:.2f} | {peak:.0f} | {cpu / base:.2f} |")
        else:
            print(f"| {name} | not available | | | | |")


if __name__ == "__main__":
    main()
