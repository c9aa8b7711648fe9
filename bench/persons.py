"""Synthetic persons of releases: their accuracy in synthetic hospitals.

Patients have one to nine visits. A visit is of one of four kinds, each with its own activity. Of the visits of a kind,
5 to 30 % are followed by another one within 30 days. *few*: hardly any patient has more than four visits. *often*: some
patients are frail and come back again and again, so that about a tenth of the visits are beyond a patient's fourth.
Truth is the whole log.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import veilog
from benchmark import NO_LOG, benchmark, grid
from calendars import BEGIN, DAY, log_of
from columns import Column
from veilog._typing import FloatArray, IntArray
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.measures.persons import has_column, numbered
from veilog.measures.similarity import relative_log_similarity

KINDS = {
    "emergency": ("arrive", "triage", "treat", "discharge"),
    "surgery": ("admit", "prepare", "operate", "recover", "discharge"),
    "clinic": ("register", "consult", "pay"),
    "birth": ("admit", "deliver", "care", "discharge"),
}
MARKS = ("triage", "operate", "consult", "deliver")
SOON = {"few": (0.30, 0.18, 0.10, 0.05), "often": (0.22, 0.14, 0.07, 0.05)}
LATER = (0.25, 0.20, 0.30, 0.10)
NEXT = ((0.5, 0.2, 0.3, 0.0), (0.3, 0.1, 0.6, 0.0), (0.2, 0.2, 0.55, 0.05), (0.1, 0.0, 0.6, 0.3))
YEARS, MOST_VISITS, FRAIL = 2, 9, 0.18
RELEASE = {"epsilon": 1, "unit": "Patient", "max_cases": 4, "times": 0.3, "window": ("2024-01-01", "2026-01-01")}


def hospital(patients: int, shape: str, seed: int) -> EventLog:
    """Return visits of so many patients over two years."""
    rng = np.random.default_rng(seed)
    names, cases, owners = list(KINDS), [], []
    for patient in range(patients):
        day, kind = rng.uniform(0, 365 * YEARS), int(rng.choice(4, p=(0.3, 0.2, 0.4, 0.1)))
        frail = shape == "often" and rng.random() < FRAIL
        for visit in range(MOST_VISITS):
            steps = list(KINDS[names[kind]])
            for extra, chance in (("test", 0.3), ("scan", 0.15)):
                if rng.random() < chance:
                    steps.insert(2, extra)
            gaps = rng.exponential(1.0 if kind == 1 else 0.3, len(steps))
            when = day + np.cumsum(gaps) - gaps[0]
            cases.append((steps, BEGIN + when * DAY))
            owners.append(f"patient {patient}")
            factor = 2.0 if frail else 1.0 if visit < 3 else 0.6
            u = rng.random()
            soon, later = SOON[shape][kind] * factor, LATER[kind] * factor
            if u >= soon + later:
                break
            gap = rng.random() ** 1.3 * 30 if u < soon else 30 + rng.exponential(30 if frail else 120)
            day, kind = when[-1] + gap, int(rng.choice(4, p=NEXT[kind]))
            if day >= 365 * YEARS:
                break
    log = log_of("hospital", cases)
    return EventLog(log.events, log.cases.append_column("Patient", pa.array(owners)), log.metadata)


def rates(log: EventLog) -> tuple[float, FloatArray, FloatArray, float, IntArray]:
    """Return five rates of visits and patients.

    The first two are the share of visits that another follows within 30 days, in all and by kind. The others are the
    shares of patients by number of visits, the share of visits beyond the fourth, and the visits of each kind.
    """
    labels, codes = log.activity_codes
    owner, times = numbered(log, "Patient"), log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()
    starts, ends = times[log.offsets[:-1]], times[log.offsets[1:] - 1]
    case, kind = np.repeat(np.arange(len(owner)), np.diff(log.offsets)), np.full(len(owner), -1)
    for number, mark in enumerate(MARKS):
        kind[case[np.array([label == mark for label in labels])[codes]]] = number
    order = np.lexsort((starts, owner))
    at = np.flatnonzero(np.diff(owner[order]) == 0)
    soon = np.zeros(len(owner), dtype=bool)
    soon[order[at]] = starts[order[at + 1]] - ends[order[at]] <= 30 * DAY * 1_000_000
    visits = np.bincount(owner)
    persons = np.bincount(visits, minlength=60)[:60] / len(visits)
    by_kind = np.array([soon[kind == number].mean() if (kind == number).any() else np.nan for number in range(4)])
    beyond = float(np.maximum(visits - 4, 0).sum() / visits.sum())
    return float(soon.mean()), by_kind, persons, beyond, np.bincount(kind[kind >= 0], minlength=4)


def measure(given: Given, cell: Cell) -> Measured:
    log = hospital(int(cell.get("patients")), str(cell.get("shape")), cell.run)
    truth, by_kind, persons, beyond, _ = rates(log)
    told: dict[str, Any] = {**RELEASE, "activities": "log", "method": "evolve", "seed": cell.run}
    method = told.pop("method")
    plain = veilog.release(log, method, **told)
    made = veilog.release(log, method, **told, persons=str(cell.get("persons")))
    values: dict[str, float | None] = {
        "truth": truth,
        "beyond": beyond,
        "plain": relative_log_similarity(log.variants, plain.variants).value,
        "similarity": relative_log_similarity(log.variants, made.variants).value,
    }
    if not has_column(made.log, "Patient"):
        return Measured(values, "no persons were released")
    rate, kinds, found, _, _ = rates(made.log)
    values |= {
        "error": abs(rate - truth),
        "within": float(abs(rate - truth) <= 0.03),
        "by kind": float(np.nanmax(np.abs(kinds - by_kind))),
        "kinds within": float(np.nanmax(np.abs(kinds - by_kind)) <= 0.05),
        "persons": float(np.abs(found - persons).sum() / 2),
    }
    return Measured(values)


BENCHMARKS = (
    benchmark(
        "persons",
        "Patients who come back: releases with made-up persons.",
        measure,
        [grid(logs=NO_LOG, shape=("few", "often"), patients=patients, persons="0.15") for patients in (3_000, 30_000)],
        [
            Column("rate", "truth", ".3f", "spread"),
            Column("beyond the fourth", "beyond", ".3f", "spread"),
            Column("error of the rate", "error", ".3f", "spread"),
            Column("within .03", "within", ".2f", "spread"),
            Column("error by kind, largest", "by kind", ".3f", "spread"),
            Column("within .05", "kinds within", ".2f", "spread"),
            Column("cases per person", "persons", ".3f", "spread"),
            Column("similarity without persons", "plain", ".3f", "spread"),
            Column("similarity", "similarity", ".3f", "spread"),
        ],
        runs=10,
        note="Epsilon 1 a patient with at most 4 cases, of which times have .3 and persons the share; mean ± standard "
        "deviation over made-up hospitals, each with a release of its own seed. Rate: share of visits after which the "
        "patient comes back within 30 days. Cases per person: half the summed differences of shares.",
        page="how-to/protect-patients.md",
    ),
)
