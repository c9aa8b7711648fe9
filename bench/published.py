"""Published results: bench/results, tables of the docs, data of sentences.

A table of a page stands between ``<!-- python bench/run.py NAME: TITLE -->`` and ``<!-- end -->``, and is never edited.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from veilog.experiments import frontier
from veilog.experiments.experiment import Experiment, Profile, Row, Table, find
from veilog.experiments.fingerprints import CLOCKED, compute
from veilog.experiments.runner import answers, read_rows, rows_file, versions_of
from veilog.methods import METHODS, benchmark_facts

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
NOTHING = {"next_activity": 0.0, "fitness": 0.0, "precision": 0.0, "f_score": 0.0, "rules": 1.0}
"""Values of an empty release in the numbers that rank methods for use cases."""
CLOSE = 1e-9
SENTENCES = Path(benchmark_facts.__file__).with_name("measured.json")


def publish(experiment: Experiment, out: Path, quick: bool = False, options: Mapping[str, str] | None = None) -> int:
    """Take over the rows of a run, and refresh the page and the sentences.

    Each row replaces the one before. The rows of quick runs are taken only on request.
    """
    ran = read_rows(rows_file(out, experiment))
    logs, runs = tuple(dict.fromkeys(row.cell.log for row in ran)), 1 + max((row.cell.run for row in ran), default=0)
    wanted = {cell.key for cell in experiment.cells(Profile(logs, runs, quick, options or {}))}
    new = [row for row in ran if row.cell.key in wanted]
    place = rows_file(RESULTS, experiment)
    rows = {row.cell.key: row for row in (*read_rows(place), *new)}
    if not rows:
        print(f"{experiment.name}: nothing was run")
        return 1
    print(f"{experiment.name}: {len(new)} of {len(rows)} rows are of this run")
    _put(experiment, list(rows.values()))
    return 0


def _put(experiment: Experiment, rows: Sequence[Row]) -> None:
    """Keep the rows, and refresh the page, the pictures and the sentences from them."""
    place = rows_file(RESULTS, experiment)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(json.dumps(row.to_json()) + "\n" for row in rows))
    tables = experiment.tables(rows)
    for page in pages_with(experiment.name):
        after, placed = refreshed(page.read_text(), experiment.name, tables)
        page.write_text(after)
        print(f"docs/{page.relative_to(DOCS)}: {placed} of {len(tables)} tables have a place there")
    for plot in experiment.plots(rows):
        picture = DOCS / "results" / f"{plot.name}.svg"
        if picture.exists():
            picture.write_text(plot.drawing.svg())
            print(f"drawn: docs/results/{picture.name}")
    if experiment.name == "frontier":
        SENTENCES.write_text(json.dumps(sentences(rows), indent=1) + "\n")
        print(f"written: {SENTENCES.relative_to(ROOT)}")


def pages_with(name: str) -> list[Path]:
    """Return the pages of the docs that have places for tables of an experiment."""
    return [page for page in sorted(DOCS.rglob("*.md")) if f"<!-- python bench/run.py {name}: " in page.read_text()]


def refreshed(page: str, name: str, tables: Sequence[Table]) -> tuple[str, int]:
    """Return the page with the tables in their places, and the number of these."""
    placed = 0
    for table in tables:
        begin = f"<!-- python bench/run.py {name}: {table.title} -->\n"
        body = "\n" + table.markdown().partition("\n\n")[2].rstrip() + "\n\n"
        if begin in page:
            placed += 1
            page = re.sub(re.escape(begin) + r".*?(?=<!-- end -->)", lambda _: begin + body, page, flags=re.DOTALL)  # noqa: B023
    return page, placed


def sentences(rows: Sequence[Row]) -> dict[str, object]:
    """Return data of sentences: mean similarities, and the code that made each."""
    measured_rows = [row for row in rows if row.get("similarity") is not None]
    logs = list(dict.fromkeys(row.cell.log for row in measured_rows))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in frontier.COLUMNS:
        places = {
            log: {epsilon: values for epsilon in frontier.EPSILONS if (values := _values(rows, log, name, epsilon))}
            for log in logs
        }
        if all(len(of_log) == len(frontier.EPSILONS) for of_log in places.values()):
            found[name] = {
                log: {epsilon: round(statistics.fmean(values), 6) for epsilon, values in of_log.items()}
                for log, of_log in places.items()
            }
    code = {name: sorted({r.version.split("-")[0] for r in _rows(measured_rows, name)}) for name in found}
    return {
        "made by": "python bench/run.py --publish frontier",
        "code": code,
        "logs": logs,
        "epsilons": list(frontier.EPSILONS),
        "runs": max(row.cell.run for row in measured_rows) + 1,
        "variants_only": [name for name in found if name in METHODS and _is_pure(name)],
        "similarity": found,
        **_use_cases(rows, logs),
    }


def _use_cases(rows: Sequence[Row], logs: Sequence[str]) -> dict[str, object]:
    """Return the numbers that rank methods for other use cases than similarity.

    These are the means of every setting that has values, the values of the logs themselves, and the settings of the
    methods.
    """
    numbers = {
        measure: {
            name: {log: own for log in logs if (own := _served(rows, log, name, measure))} for name in frontier.COLUMNS
        }
        for measure in NOTHING
    }
    itself = {row.cell.log: row for row in frontier.of(rows, method="", uniform="")}
    listed = {row.cell.log: row for row in frontier.of(rows, method="", uniform="weights")}
    measured_names = [name for name in frontier.COLUMNS if any(numbers[measure][name] for measure in NOTHING)]
    asked = {name: frontier.COLUMNS[name] for name in measured_names}
    return {
        "use_cases": {
            measure: {name: own for name, own in of_names.items() if own} for measure, of_names in numbers.items()
        },
        "originals": {
            measure: {log: round(v, 6) for log in logs if log in itself and (v := itself[log].get(measure)) is not None}
            for measure in NOTHING
        },
        # the list of all variants has each once, so its share yields the number of cases
        "cases": {
            log: round(listed[log].values["variants"] / listed[log].values["size_ratio"])
            for log in logs
            if log in listed
        },
        "asked": {
            name: {
                "method": method,
                "delta": dict(settings)["delta"] != "0",
                "settings": {key: value for key, value in settings if key != "delta" and value},
            }
            for name, (method, settings) in asked.items()
        },
    }


def _served(rows: Sequence[Row], log: str, name: str, measure: str) -> dict[str, float]:
    """Return the means at every epsilon, in which an empty release counts as nothing."""
    found = {}
    for epsilon in frontier.EPSILONS:
        of_runs = frontier.of(_rows(rows, name), log, epsilon=epsilon)
        worth = [NOTHING[measure] if row.get("similarity") == 0 else row.get(measure) for row in of_runs]
        values = [value for value in worth if value is not None]
        if values and len(values) == len(worth) and any(row.get(measure) is not None for row in _rows(rows, name)):
            found[epsilon] = round(statistics.fmean(values), 6)
    return found


def _is_pure(name: str) -> bool:
    return not METHODS[name].needs_delta and not METHODS[name].full_log


def _rows(rows: Sequence[Row], name: str) -> list[Row]:
    method, settings = frontier.COLUMNS[name]
    return frontier.of(rows, None, method, **dict(settings))


def _values(rows: Sequence[Row], log: str, name: str, epsilon: str) -> list[float]:
    return frontier.known(frontier.of(_rows(rows, name), log, epsilon=epsilon), "similarity")


def check(experiments: Sequence[Experiment], logs: Path | None, processes: int = 1) -> int:
    """Print the number of stale published rows; return 1 if there is one.

    Rows are stale by today's fingerprints and these logs.
    """
    there = find(logs) if logs else {}
    stale_ones = 0
    kept = {experiment.name: read_rows(rows_file(RESULTS, experiment)) for experiment in experiments}
    compute(((experiment, row.cell) for experiment in experiments for row in kept[experiment.name]), processes)
    for experiment in experiments:
        rows = kept[experiment.name]
        if not rows:
            if experiment.page:
                print(f"{experiment.name}: no rows are kept; docs/{experiment.page} has numbers from before they were")
            continue
        stale = stale_rows(experiment, rows, there)
        stale_ones += len(stale)
        print(f"{experiment.name}: {len(stale)} of {len(rows)} rows are stale")
        for (log, method), number in sorted(Counter((row.cell.log, row.cell.method) for row in stale).items()):
            print(f"  {', '.join(part for part in (log, method) if part) or 'all'}: {number}")
        tables = experiment.tables(rows)
        for page in pages_with(experiment.name):
            text = page.read_text()
            if refreshed(text, experiment.name, tables)[0] != text:
                stale_ones += 1
                print(f"  docs/{page.relative_to(DOCS)} lacks the tables of these rows: --publish {experiment.name}")
    return 1 if stale_ones else 0


def stale_rows(experiment: Experiment, rows: Sequence[Row], there: dict[str, Path]) -> list[Row]:
    """Return the rows whose method or measure behaves differently today.

    If the log is there, the rows of another log are stale as well.
    """
    now = versions_of(experiment, [row.cell for row in rows], there)

    def same(row: Row) -> bool:
        (code, _, log), (code_now, _, log_now) = row.version.partition("-"), now[row.cell].partition("-")
        return code == code_now and (log == log_now or row.cell.log not in there)

    return [row for row in rows if not same(row)]


def confirm(experiment: Experiment, logs: Path | None, share: float = 0.1, processes: int = 1) -> int:
    """Rerun a sample of stale rows, and mark methods with equal results as current.

    If all sampled rows of a method come out as published, its rows count as of today's code. This is for after changes
    that should change no number. Of each log and method the quickest row is rerun, and of all others a ``share``, drawn
    at random but never anew for the same code. Returns 1 if a row came out differently.
    """
    there = find(logs) if logs else {}
    rows = read_rows(rows_file(RESULTS, experiment))
    stale = [row for row in stale_rows(experiment, rows, there) if row.cell.log in there or not row.cell.log]
    now = versions_of(experiment, [row.cell for row in stale], there)
    chosen = _sample(stale, share, random.Random(" ".join(sorted(set(now.values())))))
    other = set()
    with tempfile.TemporaryDirectory() as folder:
        tasks = [(row.cell, there.get(row.cell.log), Path(folder)) for row in chosen]
        for answer in answers(experiment.measure, tasks, processes, experiment.alone):
            row, found = chosen[answer.place], answer.measured
            again = replace(row, values=found.values, problem=found.problem, texts=found.texts)
            print(f"  {row.cell.in_words()}: {'the same' if _same(row, again) else 'OTHERWISE'}", flush=True)
            other |= set() if _same(row, again) else {row.cell.method}
    held = {row.cell.key: now[row.cell] for row in stale if row.cell.method not in other}
    made = [
        replace(row, version=held[row.cell.key], made_by=row.made_by or row.version) if row.cell.key in held else row
        for row in rows
    ]
    _put(experiment, made)
    print(f"{experiment.name}: {len(chosen)} of {len(stale)} stale rows were made again, {len(held)} hold")
    return 1 if other else 0


def _sample(rows: Sequence[Row], share: float, rng: random.Random) -> list[Row]:
    kinds: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.cell.log, row.cell.method].append(row)
    first = [min(kind, key=lambda row: row.seconds) for kind in kinds.values()]
    left = [row for row in rows if row not in first]
    return [*first, *rng.sample(left, math.ceil(share * len(left)))]


def _same(row: Row, again: Row) -> bool:
    """Return True if two rows are equal but for clocked values."""

    def told(one: Row) -> dict[str, float | None]:
        return {name: one.get(name) for name in one.values if name not in CLOCKED}

    mine, other = told(row), told(again)
    if (row.problem, row.texts, list(mine)) != (again.problem, again.texts, list(other)):
        return False
    return all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE))
        for a, b in zip(mine.values(), other.values(), strict=True)
    )
