"""Messy files are read whole and as meant, or refused, as the docs' table states."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from messy import EVENTS, MESSY, Mess

import veilog
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, TIMESTAMP, EventLog

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "messy-files.md"


def made(mess: Mess, folder: Path) -> Path:
    path = folder / mess.name
    path.write_bytes(mess.make())
    return path


def events(log: EventLog) -> Counter[tuple[str | None, ...]]:
    names = log.cases[ACTIVITY].to_pylist()
    rows = zip(*(log.events[name].to_pylist() for name in (CASE_INDEX, ACTIVITY, TIMESTAMP)), strict=True)
    return Counter(
        (names[case], label, "" if time is None else time.strftime("%Y-%m-%d %H:%M:%S")) for case, label, time in rows
    )


@pytest.mark.slow
@pytest.mark.parametrize("mess", [mess for mess in MESSY if not mess.refused], ids=lambda mess: mess.what[:40])
def test_a_messy_file_is_read_with_all_that_it_holds(tmp_path: Path, mess: Mess) -> None:
    path = made(mess, tmp_path)
    log = veilog.read(path, **mess.options)
    assert events(log) == Counter(mess.events)
    assert sorted(finding.rule for finding in log.findings) == sorted(mess.said)
    if mess.attribute is not None:
        held = Counter(log.events[mess.attribute].to_pylist())
        times = len(mess.events) // len(EVENTS)
        assert held == Counter(event[3] for event in EVENTS for _ in range(times))
    variants = veilog.read_variants(path, **mess.options)
    assert variants == log.variants
    told = veilog.validate(path, **mess.options)
    assert [finding.rule for finding in told] == [finding.rule for finding in log.findings]


@pytest.mark.parametrize("mess", [mess for mess in MESSY if mess.refused], ids=lambda mess: mess.what[:40])
def test_a_messy_file_that_could_mean_anything_is_refused_with_the_way_out(tmp_path: Path, mess: Mess) -> None:
    path = made(mess, tmp_path)
    for attempt in (veilog.read, veilog.read_variants):
        with pytest.raises(InputError) as caught:
            attempt(path, **mess.options)
        assert mess.said[0] in str(caught.value)
        assert str(caught.value).startswith(str(path))


def test_the_table_in_the_docs_is_the_list_that_is_tested() -> None:
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("|")][2:]
    assert found == [mess.row for mess in MESSY], "the table should be:\n" + "\n".join(mess.row for mess in MESSY)
