"""Fingerprints of methods and measures on small synthetic logs.

The logs are made here alone, so that no change elsewhere changes them.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from veilog._plain import tables_of
from veilog._process import pool
from veilog.errors import VeilogError
from veilog.experiments import papers
from veilog.experiments.experiment import Cell, Experiment, Given, Measured
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants
from veilog.methods import METHODS
from veilog.methods.method import DeltaOptional, Method, Request
from veilog.methods.travag import PROGRAM, PUBLISHED, draws, train
from veilog.methods.travag.settings import CERTIFIED
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.releasing.result import Release
from veilog.releasing.run import release

SENSITIVE = "diagnosis"
"""Sensitive column for methods that require one."""
_WARDS = ("east", "north", "west")
_BEGIN = 1_704_092_400
_DAY = 86_400
_MOST = 20


@cache
def small_log(cases: int) -> EventLog:
    """Return a log of 8 activities with times, starts, persons and attributes.

    A person has about two cases.
    """
    rng = random.Random(cases)
    events: dict[str, list[object]] = {name: [] for name in (CASE_INDEX, ACTIVITY, TIMESTAMP, START, "staff", "cost")}
    told: dict[str, list[object]] = {name: [] for name in ("patient", "ward", "age", SENSITIVE)}
    for case in range(cases):
        now = _BEGIN + rng.randrange(200 * _DAY)
        for activity in _path(rng):
            now += int(rng.expovariate(1 / 7_200)) + 60
            events[CASE_INDEX].append(case)
            events[ACTIVITY].append(activity)
            events[TIMESTAMP].append(now * 1_000_000)
            events[START].append((now - rng.randrange(1, 60)) * 1_000_000)
            events["staff"].append(f"{activity[0]}{rng.randrange(3)}")
            events["cost"].append(round(rng.lognormvariate(3, 0.6), 1) if rng.random() < 0.9 else None)
        told["patient"].append(f"p{rng.randrange(max(1, cases // 2))}")
        told["ward"].append(rng.choice(_WARDS))
        told["age"].append(rng.randrange(18, 95))
        told[SENSITIVE].append(rng.choice(("cold", "flu", "flu", "flu", "measles")))
    size = len(events[CASE_INDEX])
    columns = {
        name: pa.array(values).cast(TIMESTAMP_TYPE) if name in (TIMESTAMP, START) else pa.array(values)
        for name, values in events.items()
    }
    return EventLog(
        events=pa.table(
            columns | {EVENT_INDEX: pa.array(range(size), pa.int64()), ACTIVITY: columns[ACTIVITY].dictionary_encode()}
        ),
        cases=pa.table({ACTIVITY: [f"c{case}" for case in range(cases)], **told}),
        source=f"small log, {cases} cases",
    )


def _path(rng: random.Random) -> list[str]:
    """Return a random trace with a long memory.

    It has a choice, tests in any order, a loop of any length, and an end that depends on the first test.
    """
    tests = ["blood", "scan"] if rng.random() < 0.6 else ["blood"]
    rng.shuffle(tests)
    path = ["enter", *tests]
    again = rng.choice((0.2, 0.85))
    while rng.random() < again and len(path) < _MOST - 2:
        path.append("visit")
    path += ["operate"] if rng.random() < 0.2 else []
    usual = "transfer" if tests[0] == "scan" else "leave"
    return [*path, "die" if rng.random() < 0.02 else usual]


def few_variants() -> Variants:
    """Return four variants, of which one is rare: for trainings."""
    return Variants.from_dict({("a", "b"): 180, ("a", "c"): 120, ("a", "b", "c"): 60, ("b",): 8})


CLOCKED = (
    "cpu",
    "cpu_minutes",
    "cpu_seconds",
    "minutes",
    "wall",
    "seconds",
    "peak",
    "stored cpu",
    "stored wall",
    "driver",
    "below",
    "moved",
    "load",
)
"""Names of values that differ every time."""

Trial = tuple[EventLog | Variants, dict[str, Any]]
_Task = tuple[Any, ...]
"""A function that computes a fingerprint, and its arguments."""
_FEW, _MEASURED, _MANY, _LARGE = 60, 150, 400, 5_000
"""Numbers of cases. Only evolve tries times of a large log, as all methods share their code."""
_SEED = 7
_DELTA = {"delta": "1e-3"}
_ATTRIBUTES = {"attributes": ["ward", "age", "cost"]}
_STAND_IN = {"travag": "travas"}
_MORE: dict[str, tuple[dict[str, Any], ...]] = tables_of(papers.__name__, "trials")
"""Settings of each method other than the defaults. New ones are tried once named here."""
_STEPS = 3
_SHORT: dict[str, Any] = {
    "latent": 16,
    "noise": 16,
    "free_autoencoder_steps": _STEPS,
    "free_generator_steps": _STEPS,
    "critic_steps": _STEPS,
}
_DEEP: dict[str, Any] = {"critic_hidden": 2, "outside": "drop", "autoencoder_steps": _STEPS, "autoencoder_share": 0.3}
_PUBLISHED: dict[str, Any] = _SHORT | {"autoencoder_steps": _STEPS, "critic_steps_per_generator": 1}
_DRAWN = 1000


_found: dict[_Task, str] = {}
"""Fingerprints that this process knows, by their tasks."""


def method_fingerprint(name: str, as_published: bool = False) -> str:
    """Return the fingerprint of a method in one mode, from its releases of small logs."""
    return _compute(_method_task(name, as_published))


def measure_fingerprint(experiment: Experiment, method: str) -> str:
    """Return the fingerprint of an experiment's measure for cells of this method.

    It is that of its values on a small log.

    Empty for an experiment without a ``small`` profile.
    """
    task = _measure_task(experiment, method)
    return _compute(task) if task else ""


def compute(cells: Iterable[tuple[Experiment, Cell]], processes: int) -> None:
    """Compute the fingerprints of cells in so many processes, for later calls."""
    tasks: dict[_Task, None] = {}
    for experiment, cell in cells:
        if cell.method:
            tasks[_method_task(cell.method, cell.get("as_published", False) is True)] = None
        if task := _measure_task(experiment, cell.method):
            tasks[task] = None
    with pool(processes) as workers:
        if workers is not None:
            running = {workers.submit(*task): task for task in tasks if task not in _found}
            _found.update({running[done]: done.result() for done in as_completed(running)})


def _compute(task: _Task) -> str:
    if task not in _found:
        function, *arguments = task
        _found[task] = function(*arguments)
    return _found[task]


def _method_task(name: str, as_published: bool) -> _Task:
    return (_method_fingerprint, name, as_published)


def _measure_task(experiment: Experiment, method: str) -> _Task | None:
    if experiment.small is None:
        return None
    cells = list(experiment.cells(experiment.small))
    own = [cell for cell in cells if cell.method == _STAND_IN.get(method, method)] or cells
    return (_cells_fingerprint, experiment.measure, tuple(dict.fromkeys((own[0], own[-1]))))


def _method_fingerprint(name: str, as_published: bool) -> str:
    own = [trial for trial in trials(METHODS[name]) if trial[1].get("as_published", False) == as_published]
    return _hash([*(_release_facts(name, *trial) for trial in own), *_trainings(name, as_published)])


def _cells_fingerprint(measure: Callable[[Given, Cell], Measured], cells: tuple[Cell, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return _hash(_measure_facts(measure, cell, Path(folder)) for cell in cells)


def trials(method: Method) -> Iterator[Trial]:
    """Yield small logs, each with a request for a release of the method.

    They have few and many cases, both modes and settings. If the method takes them, they have a delta, persons, labels
    found privately, times and attributes.
    """
    few, many = (small_log(cases) for cases in (_FEW, _MANY))
    own: dict[str, Any] = {"epsilon": "1"} if method.takes_epsilon else {}
    own |= (_DELTA if method.needs_delta else {}) | ({} if method.certified else {"as_published": True})
    if method.name == "travag":
        yield few_variants(), own | {"free_generator_steps": _STEPS}
        return
    yield few, own
    yield many, own | ({"epsilon": "0.3"} if method.takes_epsilon else {})
    yield many, own | {"as_published": True}
    if method.takes_epsilon and method.certified:
        declared = Domain(many.variants.labels[:-1], 7)
        yield many, own | {"domain": declared} | (_DELTA if isinstance(method.budget, DeltaOptional) else {})
        yield many, own | {"unit": "case:patient", "max_cases": 2}
        found = {"activities": "privately", "domain": Domain(max_length=7)}
        yield many, own | found | {"epsilon": "2", "delta": "0.01"}
        if not method.full_log:
            yield small_log(_LARGE).variants, own
            yield few, own | {"times": "0.4", "window": "2024-01-01..2024-12-31"}
            timed = small_log(_LARGE) if method.name == "evolve" else many
            yield timed, own | _DELTA | {"times": "0.3", "window": "log", "processing": True, **_ATTRIBUTES}
    yield from ((many, own | more) for more in _MORE.get(method.name, ()))


def _release_facts(name: str, log: EventLog | Variants, asked: dict[str, Any]) -> list[object] | None:
    """Return the facts of a release, or None if it is refused."""
    options: dict[str, Any] = {"domain": ALL_FROM_LOG, "seed": _SEED} | asked
    try:
        return _facts(release(log, name, **options))
    except VeilogError:
        return None


def _facts(made: Release) -> list[object]:
    """Return a release's numbers and the log's labels, without words of veilog."""
    guarantee = made.guarantee
    found: list[object] = [sorted(made.variants.to_dict().items())]
    found += [guarantee.epsilon, guarantee.delta, guarantee.guessing_advantage]
    found += [_charge_facts(charge) for charge in guarantee.charges]
    if made.full is not None or made.details is not None:
        for table in (made.log.events, made.log.cases):
            found += [(name, _column(table.column(name))) for name in sorted(table.column_names)]
    found += [_facts(other) for _, other in sorted(made.beside.items())]
    return found


def _charge_facts(charge: Charge) -> list[object]:
    plain = charge.plain()
    in_words = re.findall(r"\d[\d.,]*", f"{plain.mechanism}; {plain.sensitivity}")
    return [charge.epsilon, charge.delta, charge.cases, *in_words]


def _column(values: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
        return [None if value is None else round(value / 1e6) for value in values.to_pylist()]
    return list(values.to_pylist())


def _trainings(name: str, as_published: bool) -> Iterator[object]:
    """Yield the draws of TraVaG's networks after a few steps.

    They have a linear and a deep critic, or the settings of the paper and of its authors' program.
    """
    if name != "travag":
        return
    if as_published:
        known = [next(iter(found.values())) for found in (PUBLISHED, PROGRAM)]
        asked = [(replace(configuration, **_PUBLISHED), configuration.nominal) for configuration in known]
    else:
        asked = [(replace(CERTIFIED, **more), ("1", "1e-3")) for more in (_SHORT, _SHORT | _DEEP)]
    for configuration, (epsilon, delta) in asked:
        curator = Curator(few_variants(), randomness=noise.seeded(_SEED))
        request = Request(
            Fraction(epsilon), Fraction(delta), as_published, lambda text, fraction: None, lambda log, made: 0.0
        )
        trained = train(curator, request, configuration)
        drawn = np.concatenate(list(draws(trained, _DRAWN, np.random.default_rng(_SEED))))
        yield [drawn.tolist(), *map(_charge_facts, curator.charges)]


def _measure_facts(measure: Callable[[Given, Cell], Measured], cell: Cell, folder: Path) -> object:
    """Return the values of a cell on a small log; those that are clocked only by name."""
    try:
        found = measure(Given(None, folder, part=small_log(_MEASURED)), cell)
    except VeilogError:
        found = Measured({}, "refused")
    values = ((name, None if name in CLOCKED else value) for name, value in found.values.items())
    return [sorted(values), found.problem is not None]


def _hash(facts: Iterable[object]) -> str:
    return hashlib.sha256(json.dumps([_plain(fact) for fact in facts]).encode()).hexdigest()[:12]


def _plain(fact: object) -> object:
    """Return a fact with numbers as text of nine digits, as the last bits may differ."""
    if isinstance(fact, list | tuple):
        return [_plain(part) for part in fact]
    if isinstance(fact, float | Fraction | np.floating):
        return f"{float(fact):.9g}"
    if isinstance(fact, np.integer | int) and not isinstance(fact, bool):
        return f"{int(fact):.9g}"
    return fact
