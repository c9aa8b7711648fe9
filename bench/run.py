"""All benchmarks and experiments, by name: run, keep and check their results.

    python bench/run.py [NAME ...] [--logs FOLDER] [--quick]     run; without a name those that ``make bench`` runs
    python bench/run.py --list                                   the names
    python bench/run.py --publish NAME ... [--quick]             put the results into bench/results and the docs
    python bench/run.py --check [NAME ...]                       published numbers that today's code would not make
    python bench/run.py --confirm NAME ... [--share 0.1]         make some of those again: equal ones are today's, too

A run prints Markdown. It keeps every finished cell, so that a second run continues from the stop of the first;
``--again`` measures anew. Benchmarks that need real logs are left out without ``--logs`` or VEILOG_LOGS. ``--set``
takes any name that a benchmark has: a setting, or another Python to compare with.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a cell in a process of its own imports this file, and its memory is measured: the rest comes later
    from veilog.experiments.experiment import Experiment

HERE = Path(__file__).resolve().parent
os.environ["VEILOG_LEDGER"] = "none"  # a measurement is no release, and belongs on no account
MODULES = ("performance", "similarity", "disclosure", "evolve", "releases", "speed", "times", "attributes")
MODULES += ("amun", "travag", "attacks", "shapes", "suggest", "models", "large", "large_releases", "spark_events")
MODULES += ("serve", "pages", "claims", "prediction", "clocks", "constants", "decisions", "repeats", "persons")
LONG = ("evolve-constants", "releases-libra", "prefix-tree-models", "prefix-tree-options", "prefix-tree-playouts")
LONG += ("releases-travag", "travag-published", "travag-program", "amun-growth")
LONG += (
    "times",
    "times-released",
    "times-constants",
    "clocks",
    "constants-times",
    "constants-numbers",
    "constants-days",
    "constants-outside",
    "attributes",
    "attributes-together",
    "performance",
    "large",
    "large-releases",
    "large-events",
    "million-events",
    "spark-events",
    "serve",
    "pages",
    "claims",
    "travas",
)
LONG += ("attacks", "evolve-for", "evolve-again", "evolve-shapes", "evolve-long", "expected", "expected-use-cases")
"""Run by name only: they take hours, or need what a machine may not have."""


def benchmarks() -> Iterator[Experiment]:
    for module in MODULES:
        yield from importlib.import_module(module).BENCHMARKS


def once(experiment: Experiment, given: argparse.Namespace) -> bool:
    """Run an experiment and print its page; return True if it could run."""
    from veilog.errors import VeilogError
    from veilog.experiments import results, runner

    print(f"\n# {experiment.name}\n", flush=True)
    if given.again:
        runner.rows_file(given.out, experiment).unlink(missing_ok=True)

    def progress(text: str, fraction: float | None) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        done = runner.run(
            experiment,
            given.logs,
            given.out,
            runs=given.runs,
            only=given.only.split(",") if given.only else (),
            quick=given.quick,
            options=dict(pair.split("=", 1) for pair in given.set),
            processes=given.processes or 1,
            progress=progress,
        )
    except VeilogError as error:
        print(error if given.logs else f"left out, it needs --logs: {error}", flush=True)
        return given.logs is None
    command = f"python bench/run.py {experiment.name}{' --quick' * given.quick}"
    results.write(done, given.out, command)
    print(results.markdown(done, command).partition("\n\n")[2], flush=True)
    failed = [row for row in done.rows if not row.values and row.problem]
    return not (failed and len(failed) == len(done.rows))


def main() -> int:
    import published
    from veilog.experiments import EXPERIMENTS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), help="folder of the public logs")
    parser.add_argument("--runs", type=int, help="runs of every setting")
    parser.add_argument("--only", help="only these logs: a,b,c")
    parser.add_argument("--quick", action="store_true", help="a small part, for a first look")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--processes", type=int, help="default: all cores for --check, else 1")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="folder that keeps finished cells")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--share", type=float, default=0.1, help="of the rows that are made again to confirm others")
    given = parser.parse_args()
    known = {experiment.name: experiment for experiment in (*benchmarks(), *EXPERIMENTS.values())}
    if unknown := [name for name in given.names if name not in known]:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(known)}")
    if given.list:
        for experiment in known.values():
            print(f"{experiment.name:24} {experiment.what}")
        return 0
    if given.check:
        return published.check(
            [known[name] for name in given.names or known], given.logs, given.processes or os.cpu_count() or 1
        )
    if (given.publish or given.confirm) and not given.names:
        parser.error("name what is to be published or confirmed")
    if given.confirm:
        kept = [known[name] for name in given.names]
        return max(published.confirm(one, given.logs, given.share, given.processes or 1) for one in kept)
    if given.publish:
        options = dict(pair.split("=", 1) for pair in given.set)
        return max(published.publish(known[name], given.out, given.quick, options) for name in given.names)
    usual = [name for name in known if name not in LONG and name not in EXPERIMENTS]
    failed = [name for name in given.names or usual if not once(known[name], given)]
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
