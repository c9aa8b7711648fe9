"""Mutants of the kernel: can wrong sensitivities, scales or charges go unnoticed?

    python bench/mutants.py [--only privacy.curator] [--changed HEAD~5] [--sample 200] [--processes 2] [--list]
                            [--quick] [--allow 0.1] [--record mutants.json]

Each mutant is one small change in one function of ``TARGETS``: a number one larger, a comparison that takes in its
border or not, plus for minus, a factor two on a budget, two arguments exchanged, a call left out, a condition turned
round. It is killed if a test of the kernel fails with it. Error texts are not changed, because they are no part of a
guarantee. (Other tests check that they reveal nothing of the data.)

This does what mutmut and cosmic-ray do, but for three reasons it is a program of its own. Neither can be kept to some
lines and some kinds of change at once. Neither knows the two changes that matter most here: a budget doubled, a charge
left out. And here a mutant is put into a fork of one process that has imported everything and collected all tests. That
process runs them once, and notes the lines and the time of each. A mutant is tried with the tests that run its line:
those first that killed others in its function, then the shortest.
"""

import argparse
import contextlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage
import pytest
from hypothesis import HealthCheck, Phase, settings

from mutations import TARGETS, Mutant, forget, mutants, put_in, source_file

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "privacy"
PATIENCE = 15.0
"""Seconds of tests for each mutant. A mutant that outlives them counts as alive, though a test may kill it."""
MEMORY = 6 * 2**30
"""Most bytes of a mutant; one that needs more is noticed."""

PROFILE = "mutants"
"""Profile of Hypothesis without shrinking: only a failure matters, not a small example."""
REASONS: dict[str, str] = json.loads(Path(__file__).with_name("mutants_that_live.json").read_text())
"""Regular expressions for mutants that no test kills, with the reason why none has to."""


class Record:
    """Record of the mutants that died, kept in a file if one is named.

    These are not tried again while their line stays.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._died: dict[str, bool] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def died(self, mutant: Mutant) -> bool | None:
        """Return True if it died, False if it lived; None if unknown."""
        return self._died.get(mutant.key)

    def enter(self, mutant: Mutant, dead: bool) -> None:
        self._died[mutant.key] = dead
        if self._path is not None:
            self._path.write_text(json.dumps(self._died, indent=1) + "\n")


class Judge:
    """Plugin of pytest that tries mutants with the collected tests."""

    def __init__(self, chosen: list[Mutant], record: Record, processes: int, patience: float) -> None:
        self.chosen, self.record, self.processes, self.patience = chosen, record, processes, patience
        self._failed = False
        self._seconds: dict[str, float] = {}
        self._tests: dict[tuple[str, int], set[str]] = {}
        """Names of the tests that run a line, by file and line."""
        self._killers: dict[str, list[str]] = {}
        """Names of the tests that killed a function's last mutants, the last first, as likely killers."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._run_once(items)
        with ThreadPoolExecutor(self.processes) as pool:
            for mutant, dead in zip(self.chosen, pool.map(lambda m: self._dies(m, items), self.chosen), strict=True):
                self.record.enter(mutant, dead)
                say("dies: " if dead else "lives:", mutant.name)
        return True

    def _fails(self, item: pytest.Item) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)  # without a next item pytest keeps nothing
        return self._failed

    def _run_once(self, items: dict[str, pytest.Item]) -> None:
        """Note the time and the lines of each test; leave out those that fail unmutated."""
        traced = coverage.Coverage(data_file=None, include=[source_file(module) for module in TARGETS])
        traced.start()
        for name, item in list(items.items()):
            forget()
            traced.switch_context(name)
            started = time.process_time()
            if self._fails(item):
                say("fails without a mutant and is left out:", name)
                del items[name]
            self._seconds[name] = time.process_time() - started
        traced.stop()
        data = traced.get_data()
        for module in TARGETS:
            for line, names in data.contexts_by_lineno(source_file(module)).items():
                self._tests[module, line] = {name for name in names if name in items}
        say(f"{len(items)} tests, {sum(self._seconds.values()):.0f} s")

    def _dies(self, mutant: Mutant, items: dict[str, pytest.Item]) -> bool:
        names = set().union(*(self._tests.get((mutant.module, line), ()) for line in mutant.lines))
        likely = self._killers.setdefault(f"{mutant.module}.{mutant.function}", [])
        first = [name for name in likely if name in names]
        order = [*first, *sorted(names.difference(first), key=self._seconds.__getitem__)]

        def work() -> str:
            put_in(mutant)
            spent = 0.0
            for name in order:
                spent += self._seconds[name]
                if spent > self.patience:
                    say("out of patience:", mutant.name)
                    break
                signal.setitimer(signal.ITIMER_PROF, 10 + 10 * self._seconds[name])  # longer ones never end
                if self._fails(items[name]):
                    return name
            return ""

        killer = forked(work)
        if killer in items:
            likely[:] = [killer, *(name for name in likely if name != killer)]
        return killer != ""


def say(*words: str) -> None:
    """Print where pytest does not capture it."""
    print(*words, file=sys.__stdout__, flush=True)


def forked(work: Callable[[], str]) -> str:
    """Return the result of ``work`` in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        try:
            answer = work()
        except BaseException:  # noqa: BLE001 - a mutant may raise anything at all
            answer = "an exception"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as said:
        return "no end" if os.WIFSIGNALED(status) else said.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression that the names of the mutants match")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sample", type=int, default=None, help="run so many of them, drawn at random but repeatably")
    parser.add_argument("--changed", metavar="REVISION", help="those in lines that changed since a revision of git")
    parser.add_argument("--tests", default="", help="a pytest expression (-k): the tests to run, in place of all")
    parser.add_argument(
        "--quick", action="store_true", help="with the quick tests alone: what lives may be killed by others"
    )
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds of tests that each is tried with")
    parser.add_argument("--allow", type=float, default=0.0, help="share that may live without a reason, and no error")
    parser.add_argument("--new", action="store_true", help="not those of which it is known why they live")
    parser.add_argument("--list", action="store_true", help="say which there are, and what of them is known; run none")
    parser.add_argument("--record", type=Path, help="a JSON file of what was found, which is not run again")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if re.search(given.only, mutant.name)]
    if given.changed:
        lines = changed(given.changed)
        chosen = [mutant for mutant in chosen if lines[Path(source_file(mutant.module))].intersection(mutant.lines)]
    if given.sample is not None and given.sample < len(chosen):
        picked = set(random.Random(1).sample(range(len(chosen)), given.sample))
        chosen = [mutant for place, mutant in enumerate(chosen) if place in picked]
    record = Record(given.record)
    if given.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
    elif chosen:
        settled = [m for m in chosen if record.died(m) or (reason_for(m) and (given.new or record.died(m) is False))]
        run(sorted((m for m in chosen if m not in settled), key=lambda m: reason_for(m) != ""), record, given)
    summary(chosen, record)
    lived = sum(record.died(mutant) is False and not reason_for(mutant) for mutant in chosen)
    sys.exit(lived > given.allow * len(chosen))


def changed(revision: str) -> dict[Path, set[int]]:
    """Return the lines of each source that differ from a revision."""
    told = subprocess.run(
        ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--", "src"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines: dict[Path, set[int]] = defaultdict(set)
    path = ROOT
    for line in told.splitlines():
        if line.startswith("+++ b/"):
            path = ROOT / line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            lines[path].update(range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))
    return lines


def run(chosen: list[Mutant], record: Record, given: argparse.Namespace) -> None:
    """Try these mutants, and record which of them die."""
    os.chdir(ROOT)
    settings.register_profile(
        PROFILE,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    os.environ["HYPOTHESIS_PROFILE"] = PROFILE
    judge = Judge(chosen, record, given.processes, given.patience)
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        marked = "not slow and not nightly" if given.quick else "not nightly"
        quietly = ["-q", "-p", "no:cacheprovider", "--tb=no", "--capture=sys", "-k", given.tests, "-m", marked]
        quietly += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is loaded already
        pytest.main([*quietly, str(TESTS)], plugins=[judge])


def reason_for(mutant: Mutant) -> str:
    """Return the reason why no test has to kill it, empty if unknown."""
    return next((reason for pattern, reason in REASONS.items() if re.search(pattern, mutant.name)), "")


def summary(chosen: list[Mutant], record: Record) -> None:
    """Print a table by module, and the reasons of the mutants that live."""
    print("\n| module | mutants | judged | killed | need not die | left | killed of those that have to |")
    print("|---|---|---|---|---|---|---|")
    for module in [*TARGETS, ""]:
        all_ = [m for m in chosen if module in (m.module, "")]
        if all_:
            killed = sum(record.died(m) is True for m in all_)
            lived = [m for m in all_ if record.died(m) is False]
            left = sum(not reason_for(m) for m in lived)
            share = f"{killed / (killed + left):.1%}" if killed + left else ""
            facts = [len(all_), killed + len(lived), killed, len(lived) - left, left, share]
            print(f"| `{module}` |" if module else "| together |", *(f"{fact} |" for fact in facts))
    by_reason: dict[str, list[str]] = {}
    for mutant in chosen:
        if record.died(mutant) is False:
            by_reason.setdefault(reason_for(mutant) or "Without a reason", []).append(mutant.name)
    for reason, names in sorted(by_reason.items()):
        print(f"\n{reason} ({len(names)})", *names, sep="\n  ")


if __name__ == "__main__":
    main()
