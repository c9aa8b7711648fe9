"""Picks of a suggestion on each public log, and their loss of similarity.

The similarities of evolve (without a delta, with one, and only real variants) and TraVaS are those of the frontier (the
whole budget, delta 1e-4). So a pick is compared with all four: the loss is the best mean of them minus the pick's.
*expected* is the preview of a release on synthetic logs, against the results of releases.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmark import grid
from columns import grouped
from veilog import Domain, VeilogError, plan, twin
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile, Row, Table
from veilog.experiments.frontier import EPSILONS
from veilog.logs.synthetic.twins import Sizes
from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures.use_cases import UseCaseOptions, judge
from veilog.methods.benchmark_facts import measured
from veilog.releasing.suggest import suggest

DELTA = "1e-4"
PICKS = {
    "evolve": "evolve",
    "evolve, delta": f"evolve, delta {DELTA}",
    "only real, delta": f"evolve, only real, delta {DELTA}",
    "travas": f"travas, delta {DELTA}",
}
"""Picks, and their names in the frontier."""


def reached(pick: str, log: str, epsilon: str) -> float:
    return measured().similarity[PICKS[pick]][log][epsilon]


def measure(given: Given, cell: Cell) -> Measured:
    found = suggest(given.log.variants, epsilon=str(cell.get("epsilon")), delta=DELTA, seed=cell.run)
    pick = f"{found.method}, delta" if found.method == "evolve" and found.delta_left else found.method
    return Measured({}, texts={"pick": pick})


def tables(rows: Sequence[Row]) -> list[Table]:
    lines, losses = [], {name: [] for name in ("picked", *PICKS)}
    for (log, epsilon), own in grouped(rows, ("log", "epsilon")).items():
        values = {pick: reached(pick, log, epsilon) for pick in PICKS}
        picks = [row.texts["pick"] for row in own]
        often = ", ".join(f"{pick} {n / len(own):.0%}" for pick, n in Counter(picks).most_common())
        losses["picked"].append(max(values.values()) - statistics.fmean(values[pick] for pick in picks))
        for pick, value in values.items():
            losses[pick].append(max(values.values()) - value)
        means = (f"{value:.3f}" for value in values.values())
        lines.append((log, epsilon, *means, often, f"{losses['picked'][-1]:.3f}"))
    if not lines:
        return []
    mean = {name: statistics.fmean(values) for name, values in losses.items()}
    note = f"Mean loss {mean['picked']:.3f}; always " + ", always ".join(f"{p} {mean[p]:.3f}" for p in PICKS) + "."
    return [Table("Suggestions", ("log", "epsilon", *PICKS, "suggested", "loss"), tuple(lines), note)]


USE_CASES = ("prediction", "discovery")
TRIED = {"evolve": ("evolve", "0"), "travas": (f"travas, delta {DELTA}", DELTA), "laplace": ("laplace", "0")}
"""Methods with expected releases, their names in the frontier, and their delta."""
KNOWN = ("log", "declared", "asked 0.1")
"""Sources of synthetic logs: the log's exact sizes, declarable sizes, and sizes queried with epsilon 0.1."""


def expect(given: Given, cell: Cell) -> Measured:
    """Measure the error of expected similarities of each method at each epsilon.

    It is the expectation less the similarity of the releases. A second number is the share of releases inside the
    interval.
    """
    log, values = given.log.variants, {}
    found = list(_sizes(log, cell.log, str(cell.get("known"))))
    longest = int(log.lengths.max(initial=1))
    for method, (name, delta) in TRIED.items():
        for epsilon in ("1", "0.1") if cell.get("only") in ("", method) else ():
            asked = plan(method, epsilon=epsilon, delta=delta, domain=Domain(log.labels, longest))
            try:
                expected = [asked.expected(sizes).similarity for sizes in found]
            except VeilogError:
                continue
            reached = round(measured().similarity[name][cell.log][epsilon], 4)
            values[f"{method} {epsilon}"] = statistics.fmean(one.mean for one in expected) - reached
            values[f"{method} {epsilon} inside"] = statistics.fmean(one.low <= reached <= one.high for one in expected)
    return Measured(values)


def _sizes(log: Variants, name: str, known: str) -> Iterator[Sizes]:
    """Yield the known sizes, ten noisy ones where a query yields them."""
    exact = Sizes.of(log)
    if known == "log":
        yield exact
    elif known == "declared":
        yield replace(exact, ten=None, hundred=None, lengths=None)
    else:
        own = zlib.crc32(name.encode())
        for asking in range(10):
            yield twin(log, epsilon=known.split()[1], activities=exact.activities, seed=own + asking).sizes


def expected_cells(profile: Profile) -> Iterator[Cell]:
    """Yield all kinds of known sizes, for all methods; ``--set only=METHOD`` for one."""
    only = tuple((name, value) for name, value in profile.options.items() if name == "only")
    return (replace(cell, settings=(*cell.settings, *only)) for cell in grid(known=KNOWN)(profile))


def errors(rows: Sequence[Row]) -> list[Table]:
    lines, off, inside = [], {}, {}
    names = [f"{method} {epsilon}" for method in TRIED for epsilon in ("1", "0.1")]
    for (known, log), own in grouped(rows, ("known", "log")).items():
        means = {
            name: statistics.fmean(found)
            for name in names
            if (found := [row.values[name] for row in own if row.values.get(name) is not None])
        }
        lines.append((known, log, *(f"{means[name]:+.3f}" if name in means else "-" for name in names)))
        off.setdefault(known, []).extend(means.values())
        inside.setdefault(known, []).extend(row.values[f"{name} inside"] for row in own for name in means)
    note = " ".join(
        f"Known by {known}: {sum(abs(x) <= 0.06 for x in found)} of {len(found)} within .06, mean "
        f"{statistics.fmean(map(abs, found)):.3f}, largest {max(map(abs, found)):.3f}, root mean square "
        f"{math.sqrt(statistics.fmean(x * x for x in found)):.3f}; {sum(inside[known]):.1f} inside the interval."
        for known, found in off.items()
    )
    title = "Expected less reached similarity"
    return [Table(title, ("known", "log", *names), tuple(lines), note)] if lines else []


def expect_use_cases(given: Given, cell: Cell) -> Measured:
    """Measure the error of expected use cases of each method, by the exact sizes.

    It is the expectation less the results of releases.
    """
    log, values = given.log.variants, {}
    for method, (_, delta) in TRIED.items():
        for epsilon in ("1", "0.1"):
            asked = plan(method, epsilon=epsilon, delta=delta, domain=Domain(log.labels, int(log.lengths.max())))
            expected = dict(asked.expected(Sizes.of(log), use_cases=USE_CASES).use_cases)
            reached = [replace(asked, seed=3 * cell.run + i).run(log).variants for i in range(3)]
            judged = [judge(Pair(log, one), USE_CASES, UseCaseOptions(chief_only=True)) for one in reached if one.cases]
            for purpose, found in expected.items():
                shares = [one[purpose].chief.share for one in judged if one[purpose].chief]
                if shares:
                    values[f"{purpose} {method} {epsilon}"] = found.mean - statistics.fmean(shares)
    return Measured(values)


def use_case_errors(rows: Sequence[Row]) -> list[Table]:
    lines = []
    for (log,), own in grouped(rows, ("log",)).items():
        for purpose in USE_CASES:
            found = {name: off for row in own for name, off in row.values.items() if name.startswith(purpose)}
            mean, largest = statistics.fmean(found.values()), max(found.values(), key=abs)
            lines.append((log, purpose, str(len(found)), f"{mean:+.3f}", f"{largest:+.3f}"))
    return [Table("Expected less reached share", ("log", "use case", "settings", "mean", "largest"), tuple(lines))]


BENCHMARKS = (
    Experiment(
        name="expected-use-cases",
        what="How far the use cases that twins let expect are from what releases reach.",
        cells=grid(),
        measure=expect_use_cases,
        tables=use_case_errors,
        logs=("sepsis", "receipt"),
        quick_logs=("receipt",),
        runs=1,
        quick_runs=1,
        page="suggest.md",
    ),
    Experiment(
        name="expected",
        what="How far the similarity that twins let expect is from what releases reach.",
        cells=expected_cells,
        measure=expect,
        tables=errors,
        logs=("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie", "ccc19"),
        quick_logs=("receipt",),
        runs=1,
        quick_runs=1,
        small=Profile(("ccc19",), 1, False, {"known": "declared", "only": "travas"}),
        page="suggest.md",
    ),
    Experiment(
        name="suggest",
        what="Which method a suggestion picks on public logs, and what the pick loses.",
        cells=grid(epsilon=EPSILONS),
        measure=measure,
        tables=tables,
        logs=("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie"),
        quick_logs=("sepsis",),
        runs=20,
        quick_runs=5,
        page="suggest.md",
    ),
)
