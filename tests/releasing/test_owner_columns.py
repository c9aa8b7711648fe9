"""Notes about released times and attributes are confidential."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refusals import refused

import veilog
from veilog._language import spoken
from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import OwnerMessage
from veilog.releasing.owner import unknown_times
from veilog.report.words import localise

LOG = hospital(120, seed=1)
AGES = tuple(sorted(set(LOG.cases.column("age group").to_pylist())))


def with_times(known: int) -> EventLog:
    """Return the log with the first so many times known."""
    times = LOG.events.column(TIMESTAMP).to_pylist()
    times[known:] = [None] * (len(times) - known)
    place = LOG.events.column_names.index(TIMESTAMP)
    return replace(LOG, events=LOG.events.set_column(place, TIMESTAMP, pa.array(times, TIMESTAMP_TYPE)))


def noted(log: EventLog, **more: object) -> dict[str, OwnerMessage]:
    """Return the data owner's notes by code, and assert that no one else sees them."""
    wanted: dict[str, object] = {"epsilon": 1, "activities": "log", **more}
    released = veilog.release(log, "evolve", **wanted)  # type: ignore[arg-type]
    told = json.dumps({**released.to_json(), "owner_only": None})
    assert not any(str(note) in told for note in released.owner_only.notes)
    for language in ("de", "fr", "nl"):
        with spoken(language):
            # A page has an account for every release, so no page has the notes without one.
            assert not [
                note
                for note in released.owner_only.notes
                if localise(note) == note.english and "ledger" not in note.english
            ]
    return {note.code: note for note in released.owner_only.notes}


def values(note: OwnerMessage) -> dict[str, Any]:
    return dict(note.values)


@pytest.mark.slow
def test_what_is_left_out_of_cases_is_said_in_four_languages() -> None:
    names = list(LOG.variants.labels)
    said = noted(LOG, activities=None, domain=veilog.Domain(activities=(names[0] + "x", *names[1:]), max_length=2))
    assert "one-activity-undeclared" in said and said["cases-cut"].values["longest"] == 2
    two = noted(LOG, activities=None, domain=veilog.Domain(activities=tuple(names[2:])))
    assert two["some-activities-undeclared"].values["activities"] == 2
    many = noted(LOG, activities=None, domain=veilog.Domain(activities=("something",), max_length=1))
    assert many["many-activities-undeclared"].values["more"] > 0
    assert noted(LOG, unit="age group", max_cases=1)["persons-over-bound"].values["most"] == 1


@pytest.mark.slow
def test_values_outside_the_declared_ones_are_counted_and_what_was_meant_is_said() -> None:
    typo = AGES[0] + "x"
    share = LOG.cases.column("age group").to_pylist().count(AGES[0])
    domain = veilog.Domain(attributes={"age group": (typo, *AGES[1:])})
    said = noted(LOG, attributes=["age group"], domain=domain)
    one = values(said["one-value-undeclared"])
    assert (one["attribute"], one["counted"]) == ("'age group'", f"{AGES[0]} ({share})")
    assert (one["lost"], one["known"]) == (share, 120)
    assert any(f"{typo!r} → {AGES[0]!r}." in str(note) for note in said.values())
    right = veilog.Domain(attributes={"age group": AGES})
    assert not [code for code in noted(LOG, attributes=["age group"], domain=right) if code.endswith("-undeclared")]


@pytest.mark.slow
def test_numbers_beyond_the_declared_range_are_counted_and_truth_values_are_text() -> None:
    costs = [cost for cost in LOG.events.column("cost").to_pylist() if cost is not None]
    beyond = sum(cost > 50 for cost in costs)
    said = noted(LOG, attributes=["cost"], domain=veilog.Domain(attributes={"cost": (-1234567, 50.125)}))
    outside = values(said["values-outside-range"])
    assert (outside["lost"], outside["known"], outside["attribute"]) == (beyond, len(costs), "'cost'")
    assert " -1234567 to 50.125: " in str(said["values-outside-range"])
    flags = LOG.cases.append_column("flag", pa.array([True, False] * 60))
    said = noted(replace(LOG, cases=flags), attributes=["flag"], domain=veilog.Domain(attributes={"flag": ("true",)}))
    one = values(said["one-value-undeclared"])
    assert (one["counted"], one["lost"], one["known"], one["share"]) == ("false (60)", 60, 120, "50")


@pytest.mark.nightly
def test_how_many_events_have_no_known_time_is_told_where_times_are_released() -> None:
    assert "no-time-known" in noted(with_times(0), times=0.3)
    some = values(noted(with_times(10), times=0.3)["some-times-unknown"])
    assert (some["unknown"], some["events"]) == (len(LOG) - 10, len(LOG))
    days = [
        time.replace(hour=0, minute=0, second=0, microsecond=0) for time in LOG.events.column(TIMESTAMP).to_pylist()
    ]
    place = LOG.events.column_names.index(TIMESTAMP)
    dated = replace(LOG, events=LOG.events.set_column(place, TIMESTAMP, pa.array(days, TIMESTAMP_TYPE)))
    assert "times-are-days" in noted(dated, times=0.3)
    of_times = {"no-time-known", "some-times-unknown", "times-are-days", "times-artificial"}
    assert not of_times & {*noted(with_times(10)), *noted(LOG, times=0.3)}


@pytest.mark.slow
def test_a_log_that_was_read_without_times_is_refused_them_before_anything_is_asked(tmp_path: Path) -> None:
    veilog.write(with_times(0), tmp_path / "log.xes")
    log = veilog.read(tmp_path / "log.xes")
    ledger = Ledger.open(tmp_path / "l", create=True)
    ledger.set_budget(log, 5)
    before = (tmp_path / "l").read_bytes()
    with refused(ParameterError, "timestamps-all-missing") as told:
        veilog.release(log, "evolve", epsilon=1, times=0.3, activities="log", ledger=ledger)
    assert told.value.parameter == "times" and (tmp_path / "l").read_bytes() == before
    assert veilog.release(log, "evolve", epsilon=1, activities="log").variants.cases


@pytest.mark.slow
def test_times_of_a_release_without_times_are_said_to_be_artificial(tmp_path: Path) -> None:
    veilog.release(LOG, "evolve", epsilon=1, activities="log").save(tmp_path / "out.csv")
    assert "times-artificial" in noted(veilog.read(tmp_path / "out.csv"), times=0.3)


@pytest.mark.slow
def test_the_owner_is_told_of_texts_that_a_spreadsheet_program_would_run_and_they_are_written_as_they_are(
    tmp_path: Path,
) -> None:
    """Texts that a spreadsheet would run are reported, and written unchanged."""
    labels = ["=1+1", "-1", "-", "a=b", "@SUM(A1)"]
    cases = {(label,): 400 for label in labels}
    released = veilog.release(veilog.Variants.from_dict(cases), "evolve", epsilon=1, activities=labels, seed=1)
    (named,) = (note.values["names"] for note in released.owner_only.notes if note.code == "texts-are-formulas")
    assert "'=1+1'" in named and "'@SUM(A1)'" in named
    assert "'-1'" not in named and "'-'" not in named and "a=b" not in named
    assert "texts-are-formulas" not in [remark.code for remark in released.remarks]
    released.save(tmp_path / "out.csv")
    assert veilog.read(tmp_path / "out.csv").variants.to_dict() == released.variants.to_dict()
    ward = LOG.cases.append_column("ward", pa.array(["=A1"] * LOG.number_of_cases))
    domain = veilog.Domain("log", attributes={"ward": ("=A1", "=A2")})
    told = noted(replace(LOG, cases=ward), attributes=["ward"], domain=domain, activities=None, seed=1)
    assert "'=A1'" in told["texts-are-formulas"].values["names"], "of values of attributes, too"
    assert "texts-are-formulas" not in noted(LOG)


@pytest.mark.parametrize(
    ("times", "codes"),
    [
        (["2024-01-01T08:00Z", "2024-01-02T09:30Z"], []),
        (["2024-01-01", "2024-01-02"], ["times-are-days"]),
        (["2024-01-01T08:00Z", ""], ["some-times-unknown"]),
        (["", ""], ["no-time-known"]),
    ],
)
def test_the_owner_is_told_what_the_times_of_a_log_are(times: list[str], codes: list[str], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n" + "".join(f"{i},a,{time}\n" for i, time in enumerate(times)))
    log = veilog.read(path, timestamp="time", policies={"missing-timestamp": "keep", "no-timestamps": "keep"})
    assert [note.code for note in unknown_times(log)] == codes
