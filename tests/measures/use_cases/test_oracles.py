"""Distances and similarities equal those of log-distance-measures and sdmetrics.

These packages have an environment of their own: `make oracles`, and VEILOG_ORACLES names its Python.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from veilog import read
from veilog.logs.eventlog import CASE_INDEX, TIMESTAMP, EventLog
from veilog.measures.use_cases import UseCaseOptions
from veilog.measures.use_cases.attributes import ATTRIBUTES, Activities, compare_attributes, marginal, marginals, pair
from veilog.measures.use_cases.performance import PERFORMANCE
from veilog.measures.use_cases.sides import split

Oracle = Callable[[str, dict[str, Any]], Any]
SCRIPT = Path(__file__).parent / "oracles" / "oracle.py"
FIVE = ("sepsis", "bpic2013_incidents", "receipt", "ccc19", "unrineweginfectie")
NEARLY = 1e-6
"""Tolerance for TVComplement, which counts a value new in the release a millionth."""


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    python = os.environ.get("VEILOG_ORACLES")
    if not python:
        pytest.skip("VEILOG_ORACLES names no Python with the packages of oracles/requirements.txt")

    def ask(what: str, arrays: dict[str, Any]) -> Any:
        np.savez(tmp_path / "logs.npz", **arrays)
        done = subprocess.run([python, SCRIPT, what, tmp_path / "logs.npz"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return ask


def halves(folder: Path, name: str, most: int = 10_000) -> tuple[EventLog, EventLog]:
    """Two halves of a log, or of so many of its cases."""
    log = read(folder / f"{name}.xes.gz")
    first, second = split(log.only(np.arange(min(most, log.number_of_cases))), 0.5)
    assert isinstance(first, EventLog)
    assert isinstance(second, EventLog)
    return first, second


@pytest.mark.slow
@pytest.mark.parametrize("name", FIVE)
def test_distances_are_those_of_log_distance_measures(logs: Path, oracle: Oracle, name: str) -> None:
    used, judged = halves(logs, name)
    arrays = {}
    for side, log in (("released", used), ("original", judged)):
        labels, codes = log.activity_codes
        named = np.array(labels)[codes]
        for column, values in (
            ("case", log.events.column(CASE_INDEX).to_numpy()),
            ("activity", named),
            ("time", log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()),
            ("place", np.arange(len(log))),
        ):
            arrays[f"{side}/events/{column}"] = values
    expected = oracle("distances", arrays)
    found = PERFORMANCE.score(used, judged, UseCaseOptions())
    assert len(expected) == 7
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-9)


def tables(used: EventLog, judged: EventLog) -> dict[str, Any]:
    """Return the compared values of both logs as the oracle reads them, by table."""
    own = Activities(used, judged)
    arrays: dict[str, Any] = {}
    rows = [log.events.column(CASE_INDEX).to_numpy() for log in (used, judged)]
    for place, (side, log) in enumerate((("released", used), ("original", judged))):
        labels, codes = log.activity_codes
        arrays[f"{side}/events/#"] = np.array([own.numbers[label] for label in labels])[codes]
        arrays[f"{side}/cases/# end"] = own.ends[place]
        there = np.zeros((log.number_of_cases, own.varying), dtype=np.int64)
        there[own.held[place].case, own.held[place].activity] = 1
        for number in range(own.varying):
            arrays[f"{side}/cases/# {number}"] = there[:, number]
        for each in compare_attributes(used, judged):
            values = (each.used, each.judged)[place]
            assert values is not None and each.used is not None
            # Beside a category a number is one: sdmetrics would cut its range, we cut at quantiles of what is compared.
            if each.ordered:
                table = "cases" if each.of_cases else "events"
                arrays[f"{side}/{table} cut/{each.name}"] = each.codes[1 - place]
            if each.ordered and each.of_cases:
                spread = replace(each, used=each.used.of(rows[0]), judged=each.judged.of(rows[1]))
                arrays[f"{side}/events cut/~{each.name}"] = spread.codes[1 - place]
            if each.of_cases:
                arrays[f"{side}/cases/{each.name}"] = values.array
                arrays[f"{side}/events/~{each.name}"] = values.array[rows[place]]
            else:
                arrays[f"{side}/events/{each.name}"] = values.array
    return arrays


def mean(values: Iterable[float | None]) -> float:
    return float(np.mean([value for value in values if isinstance(value, float)]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sepsis", "bpic2013_incidents", "receipt", "ccc19", "traffic_fines"])
def test_similarities_are_those_of_sdmetrics(logs: Path, oracle: Oracle, name: str) -> None:
    used, judged = halves(logs, name, most=4_000)
    expected = oracle("attributes", tables(used, judged))
    found = ATTRIBUTES.score(used, judged, UseCaseOptions())
    cases, events = expected["cases"], expected["events"]
    assert marginals(used, judged) == pytest.approx({**cases["shapes"], **events["shapes"]}, abs=NEARLY)
    assert found["shapes"] == pytest.approx(mean([*cases["shapes"].values(), *events["shapes"].values()]), abs=NEARLY)
    with_path = [value for *names, value in cases["pairs"] if any("#" in each for each in names)]
    without = [value for *names, value in cases["pairs"] + events["pairs"] if not any("#" in each for each in names)]
    assert found["pairs"] == pytest.approx(mean(without), rel=1e-9)
    assert found["with_control_flow"] == pytest.approx(mean(with_path), rel=1e-9)
    assert found["by_activity"] == pytest.approx(mean(events["by_activity"].values()), abs=NEARLY)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sepsis", "bpic2013_incidents", "receipt"])
def test_what_is_always_known_has_the_numbers_of_the_quality_report(logs: Path, oracle: Oracle, name: str) -> None:
    """Similarities of known values equal the quality report's, with two exceptions.

    For a number beside a category the report cuts each log by its own range, and sees no change of it. Our pairs are
    all pairs, not only those that are associated in the original.
    """
    used, judged = halves(logs, name)
    by_name = {each.name: each for each in compare_attributes(used, judged)}
    reports = [part["report"] for part in oracle("attributes", tables(used, judged)).values() if part["report"]]
    assert reports
    for report in reports:
        shapes = {name: marginal(by_name[name].used, by_name[name].judged) for name in report["shapes"]}
        assert shapes == pytest.approx(report["shapes"], abs=NEARLY)
        assert report["pairs"]
        for first, second, score in report["pairs"]:
            assert pair(by_name[first], by_name[second]) == pytest.approx(score, rel=1e-9)
