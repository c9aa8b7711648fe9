"""How fast XES is read, as ratios against bare expat in the same run.

Makes a log of a hospital's size and habits (deterministic), then reads it in fresh processes: expat without any handler
(the least that a reader that checks well-formedness has to do), veilog with one and two processes, r4pm and pm4py where
they can be imported. CPU seconds are those of a process and its children, without its imports and with them; peak
memory is that of the largest process. ``--set r4pm=PYTHON`` and ``pm4py=PYTHON`` name other interpreters that have
them, ``--set gz=yes`` has the log compressed.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmark import CPU, NO_LOG, PEAK, WALL, benchmark, grid
from columns import Column
from veilog.experiments.experiment import Cell, Given, Measured, Profile

_PRELUDE = """
import json, os, resource, sys, time
path = sys.argv[1]

def spent():
    here, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return here.ru_utime + here.ru_stime + below.ru_utime + below.ru_stime

def report(events):
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    peak = max(own, below.ru_maxrss) / 1024
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
from veilog.logs.xes.reader import read_xes
START
report(len(read_xes(Path(path), findings=Findings())))
""",
    "veilog, 2 processes": """
from pathlib import Path
from veilog.logs.findings import Findings
from veilog.logs.input.source import ReadOptions
from veilog.logs.xes.reader import read_xes
START
report(len(read_xes(Path(path), findings=Findings(), declared=ReadOptions(processes=2))))
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


def cells(profile: Profile) -> Iterator[Cell]:
    suffix = ".xes.gz" if profile.options.get("gz") else ".xes"
    for cell in grid(logs=NO_LOG, events=1_000_000, file=suffix, reader=tuple(_READERS), quick={"events": 100_000})(
        profile
    ):
        python = profile.options.get(str(cell.get("reader")))
        yield replace(cell, settings=(*cell.settings, ("python", python))) if python else cell


def measure(given: Given, cell: Cell) -> Measured:
    """CPU, wall and peak memory of one reader in a process of its own."""
    events, reader = int(cell.get("events")), str(cell.get("reader"))
    path = given.folder / f"log-{events}{cell.get('file')}"
    if not path.exists():
        plain = given.folder / f"log-{events}.xes"
        write_log(plain, events)
        if path != plain:
            with plain.open("rb") as source, gzip.open(path, "wb", 6) as target:
                shutil.copyfileobj(source, target)
    code = _PRELUDE + _READERS[reader].replace("START", _START)
    command = [str(cell.get("python", sys.executable)), "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if done.returncode:
        return Measured({}, (done.stderr.strip().splitlines() or [str(done.returncode)])[-1])
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["events"] in (None, events), f"{reader} lost events"
    return Measured(found | {"size": path.stat().st_size / 1e6})


BENCHMARKS = (
    benchmark(
        "reading",
        "How fast XES is read, against bare expat.",
        measure,
        cells,
        (
            *(Column("file MB", "size", ",.0f"), CPU, Column("with imports", "all"), WALL, PEAK),
            Column("CPU / expat", "cpu", baseline={"reader": "expat, no handlers"}),
        ),
        runs=3,
        page="results/performance.md",
    ),
)
