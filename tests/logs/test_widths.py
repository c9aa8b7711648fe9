"""A log has at most a thousand attributes, and no small file makes a huge table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused
from xes_tools import event, trace

import veilog
from veilog.errors import InputError
from veilog.logs.facts import unit_columns
from veilog.logs.input import quality_checks
from veilog.logs.input.quality_checks import MOST_COLUMNS

FEWER = MOST_COLUMNS - 10


def xes(folder: Path, keys: int, *, of: str = "event") -> Path:
    """A case with an event for each key, which has a value there and nowhere else."""
    path = folder / "log.xes"
    attributes = [f'<string key="lab_{key}" value="v"/>' for key in range(keys)]
    if of == "event":
        cases = [trace(event(attribute), name=f"c{place}") for place, attribute in enumerate(attributes)]
    else:
        cases = [trace(attribute, event(), name=f"c{place}") for place, attribute in enumerate(attributes)]
    path.write_text(f"<log>{''.join(cases)}</log>")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("of", ["event", "case"])
def test_an_attribute_of_its_own_for_each_event_is_refused(tmp_path: Path, of: str) -> None:
    with pytest.raises(InputError) as caught:
        veilog.read(xes(tmp_path, 30_000, of=of))
    assert caught.value.advice and f"{MOST_COLUMNS:,}" in caught.value.problem
    assert pa.default_memory_pool().max_memory() < 1 << 30


@pytest.mark.nightly
def test_nearly_as_many_are_read_and_looked_at(tmp_path: Path) -> None:
    log = veilog.read(xes(tmp_path, FEWER))
    assert len(log.events.column_names) == FEWER + 4
    assert unit_columns(log) == ()


@pytest.mark.parametrize("after", [0, 40_000], ids=["in one block", "in several blocks"])
def test_attributes_that_almost_no_event_has_are_refused_beyond_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    path = xes(tmp_path, 400)
    text = path.read_text().replace("</log>", trace(*[event(time=None)] * after, name="long") + "</log>")
    path.write_text(text)
    monkeypatch.setattr(quality_checks, "_CELLS", 30_000)
    with pytest.raises(InputError) as caught:
        veilog.read(path, policies={"missing-timestamp": "keep", "empty-trace": "keep"})
    assert "cells" in caught.value.problem


def test_a_filled_table_of_that_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality_checks, "_CELLS", 100)
    veilog.read(xes(tmp_path, 20))


@pytest.mark.slow
def test_a_table_has_no_more_either(tmp_path: Path) -> None:
    def table(columns: int) -> pa.Table:
        more = {f"lab_{place}": ["1"] for place in range(columns)}
        return pa.table({"case": ["c"], "activity": ["a"], "time": ["2024-01-01"], **more})

    assert len(veilog.read(table(FEWER)).events.column_names) == FEWER + 4
    for wide in (table(MOST_COLUMNS), table(MOST_COLUMNS).to_pandas()):
        with pytest.raises(InputError, match=f"{MOST_COLUMNS:,}"):
            veilog.read(wide)


def test_a_header_that_is_too_long_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time," + ",".join(f"lab_{place}" for place in range(20_000)) + "\n")
    with refused(InputError, "header-row-over-sample", sample=64):
        veilog.read(path)


@pytest.mark.nightly
def test_nor_has_an_object_centric_log(tmp_path: Path) -> None:
    def document(attributes: int) -> str:
        events = [
            {
                "id": f"e{place}",
                "type": "a",
                "time": "2024-01-01T00:00:00Z",
                "attributes": [{"name": f"lab_{place}", "value": "v"}],
                "relationships": [{"objectId": "o", "qualifier": ""}],
            }
            for place in range(attributes)
        ]
        kinds = {"objectTypes": [{"name": "order", "attributes": []}], "eventTypes": [{"name": "a", "attributes": []}]}
        return json.dumps({**kinds, "objects": [{"id": "o", "type": "order"}], "events": events})

    path = tmp_path / "log.json"
    path.write_text(document(20))
    assert "lab_19" in veilog.read(path).events.column_names
    path.write_text(document(20_000))
    with pytest.raises(InputError, match=f"{MOST_COLUMNS:,}"):
        veilog.read(path)
