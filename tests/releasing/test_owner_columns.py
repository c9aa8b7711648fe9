"""What the owner is told about times and attributes that are released; and that nobody else is."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused

import veilog
from veilog._language import spoken
from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.owner import unknown_times
from veilog.report.stated import stated

LOG = hospital(120, seed=1)
AGES = tuple(sorted(set(LOG.cases.column("age group").to_pylist())))


def with_times(known: int) -> EventLog:
    """The log with the first so many times known."""
    times = LOG.events.column(TIMESTAMP).to_pylist()
    times[known:] = [None] * (len(times) - known)
    place = LOG.events.column_names.index(TIMESTAMP)
    return replace(LOG, events=LOG.events.set_column(place, TIMESTAMP, pa.array(times, TIMESTAMP_TYPE)))


def noted(log: EventLog, **more: object) -> str:
    """What the owner is told; and nobody else."""
    wanted: dict[str, object] = {"epsilon": 1, "activities": "log", **more}
    released = veilog.release(log, "evolve", **wanted)  # type: ignore[arg-type]
    told = json.dumps({**released.to_json(), "owner_only": None})
    assert not any(str(note) in told for note in released.owner_only.notes)
    for language in ("de", "fr", "nl"):
        with spoken(language):
            # A page has an account for every release, so what is said without one is on none.
            assert not [
                note
                for note in released.owner_only.notes
                if stated(note) == note.english and "ledger" not in note.english
            ]
    return "\n".join(map(str, released.owner_only.notes))


@pytest.mark.slow
def test_what_is_left_out_of_cases_is_said_in_four_languages() -> None:
    names = list(LOG.variants.labels)
    said = noted(LOG, activities=None, domain=veilog.Domain(activities=(names[0] + "x", *names[1:]), max_length=2))
    assert "leaves out 1 activity" in said
    assert "cuts" in said
    assert "leaves out 2 activities" in noted(LOG, activities=None, domain=veilog.Domain(activities=tuple(names[2:])))
    many = noted(LOG, activities=None, domain=veilog.Domain(activities=("something",), max_length=1))
    assert " and " in many
    assert " more. " in many
    assert "more cases than count, 1 each: " in noted(LOG, unit="age group", max_cases=1)


@pytest.mark.slow
def test_values_outside_the_declared_ones_are_counted_and_what_was_meant_is_said() -> None:
    typo = AGES[0] + "x"
    share = LOG.cases.column("age group").to_pylist().count(AGES[0])
    domain = veilog.Domain(attributes={"age group": (typo, *AGES[1:])})
    said = noted(LOG, attributes=["age group"], domain=domain)
    assert f"The declaration of 'age group' leaves out 1 value of the log: {AGES[0]} ({share})." in said
    assert f"{share} of 120 (" in said and f"{typo!r} → {AGES[0]!r}." in said
    right = veilog.Domain(attributes={"age group": AGES})
    assert "leaves out" not in noted(LOG, attributes=["age group"], domain=right)


@pytest.mark.slow
def test_numbers_beyond_the_declared_range_are_counted_and_truth_values_are_text() -> None:
    costs = [cost for cost in LOG.events.column("cost").to_pylist() if cost is not None]
    beyond = sum(cost > 50 for cost in costs)
    said = noted(LOG, attributes=["cost"], domain=veilog.Domain(attributes={"cost": (-1234567, 50.125)}))
    assert (
        f"{beyond:,} of {len(costs):,} values of 'cost'" in said
        and "-1234567 to 50.125: they count as its ends" in said
    )
    flags = LOG.cases.append_column("flag", pa.array([True, False] * 60))
    said = noted(replace(LOG, cases=flags), attributes=["flag"], domain=veilog.Domain(attributes={"flag": ("true",)}))
    assert "leaves out 1 value of the log: false (60). 60 of 120 (50 %)" in said


@pytest.mark.nightly
def test_how_many_events_have_no_known_time_is_told_where_times_are_released() -> None:
    assert "No event of the log has a known time" in noted(with_times(0), times=0.3)
    events = len(LOG)
    assert f"{events - 10:,} of {events:,} events of the log (" in noted(with_times(10), times=0.3)
    days = [
        time.replace(hour=0, minute=0, second=0, microsecond=0) for time in LOG.events.column(TIMESTAMP).to_pylist()
    ]
    place = LOG.events.column_names.index(TIMESTAMP)
    dated = replace(LOG, events=LOG.events.set_column(place, TIMESTAMP, pa.array(days, TIMESTAMP_TYPE)))
    assert "All times of the log are dates without a time of day" in noted(dated, times=0.3)
    assert "time of day" not in noted(LOG, times=0.3)
    assert "known time" not in noted(with_times(10)) + noted(LOG, times=0.3)


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
    assert "times of the log are artificial" in noted(veilog.read(tmp_path / "out.csv"), times=0.3)


@pytest.mark.slow
def test_the_owner_is_told_of_texts_that_a_spreadsheet_program_would_run_and_they_are_written_as_they_are(
    tmp_path: Path,
) -> None:
    """A number, a dash and a label with a sign inside are none; what was put before others would change their names."""
    labels = ["=1+1", "-1", "-", "a=b", "@SUM(A1)"]
    cases = {(label,): 400 for label in labels}
    released = veilog.release(veilog.Variants.from_dict(cases), "evolve", epsilon=1, activities=labels, seed=1)
    note = next(str(note) for note in released.owner_only.notes if "takes what begins with" in str(note))
    assert "'=1+1'" in note and "'@SUM(A1)'" in note and "'-1'" not in note and "'-'" not in note and "a=b" not in note
    assert note not in released.remarks
    released.save(tmp_path / "out.csv")
    assert veilog.read(tmp_path / "out.csv").variants.to_dict() == released.variants.to_dict()
    ward = LOG.cases.append_column("ward", pa.array(["=A1"] * LOG.number_of_cases))
    domain = veilog.Domain("log", attributes={"ward": ("=A1", "=A2")})
    told = noted(replace(LOG, cases=ward), attributes=["ward"], domain=domain, activities=None, seed=1)
    assert "takes what begins with" in told and "'=A1'" in told, "of values of attributes, too"
    assert "takes what begins with" not in noted(LOG)


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
