"""Facts about a log's columns for the data owner, and likely columns of persons."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilog
from veilog.logs import files
from veilog.logs.facts import PersonColumn, attributes_of, names_persons, person_columns, transitions_of, unit_columns
from veilog.logs.storage.loader import store

CASES = 800


def hospital() -> pa.Table:
    """800 visits of 399 patients, one of whom came six times; two events each."""
    visits = [0] * 6 + [1 + i % 398 for i in range(CASES - 6)]
    rows = [visit for visit in range(CASES) for _ in range(2)]
    return pa.table(
        {
            "case": [f"v{visit}" for visit in rows],
            "activity": ["in", "out"] * CASES,
            "time": pa.array(range(2 * CASES), pa.timestamp("s")),
            "Patient": [f"p{visits[visit]}" for visit in rows],
            "case:person": [visits[visit] for visit in rows],
            "ward": [f"w{visit % 12}" for visit in rows],
            "weight": [50.0 + visit % 300 for visit in rows],
            "born": pa.array([visit % 300 for visit in rows], pa.timestamp("s")),
            "urgent": [visit % 2 == 0 for visit in rows],
            "nurse": [f"n{i % 500}" for i in range(2 * CASES)],
            "invoice": [f"i{visit}" for visit in rows],
            "clinic": ["one"] * len(rows),
        }
    )


def test_the_patient_is_pointed_out_and_nothing_else() -> None:
    found = person_columns(files.read(hospital()))
    assert found == (
        PersonColumn("Patient", 399, 800, 6, 2, 796, True),
        PersonColumn("case:person", 399, 800, 6, 2, 796, True),
    )
    assert re.findall(r"\d+", str(found[0])) == ["399", "800", "6", "2", "796"]
    assert "--unit Patient --max-cases 2" in str(found[0])


@pytest.mark.parametrize(
    ("cases_of_each", "usual", "kept"),
    [
        ([1] * 50 + [3] * 45 + [4] * 4 + [240], 3, 50 + 45 * 3 + 4 * 3 + 3),
        ([1] * 99 + [240], 2, 101),
        ([7] * 100, 7, 700),
        ([2] * 20, 2, 40),
    ],
)
def test_most_of_the_cases_of_nearly_everybody_count_with_what_is_proposed(
    tmp_path: Path, cases_of_each: list[int], usual: int, kept: int
) -> None:
    """One person with very many cases, such as a placeholder, raises no proposal."""
    rows = [f"v{p}-{i},in,2024-01-01,p{p}" for p, many in enumerate(cases_of_each) for i in range(many)]
    (tmp_path / "log.csv").write_text("\n".join(["nr,activity,time,Patient", *rows]) + "\n")
    (found,) = unit_columns(files.read(tmp_path / "log.csv", case="nr"))
    assert (found.usual, found.kept, found.most) == (usual, kept, max(cases_of_each))
    assert found.options == f"--unit Patient --max-cases {usual}"


def test_pieces_on_disk_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.logs.storage.loader._PIECE", 300)
    pq.write_table(hospital(), tmp_path / "log.parquet")
    kept = store(tmp_path / "log.parquet")
    assert kept is not None
    assert len(kept.sizes) > 1
    assert person_columns(kept) == person_columns(files.read(hospital()))


def test_cases_without_a_value_or_without_events_do_not_count(tmp_path: Path) -> None:
    table = hospital()
    patients = [None if i < 20 else name for i, name in enumerate(table["Patient"].to_pylist())]
    log = files.read(table.set_column(3, "Patient", pa.array(patients)))
    assert person_columns(log)[1] == PersonColumn("Patient", 398, 790, 2, 2, 790, True)
    traces = "".join(f"<trace><string key='pid' value='{i // 2}'/></trace>" for i in range(6))
    (tmp_path / "log.xes").write_text(f"<log>{traces}</log>")
    log = files.read(tmp_path / "log.xes", policies={"case-without-name": "keep"})
    assert person_columns(log) == (PersonColumn("pid", 3, 6, 2, 2, 6, True),)
    (tmp_path / "log.xes").write_text("<log/>")
    assert person_columns(files.read(tmp_path / "log.xes")) == ()


def test_a_column_of_events_that_is_called_person_or_case_is_named_as_the_unit_takes_it(tmp_path: Path) -> None:
    rows = [f"v{i},{step},2024-01-{1 + i % 27:02d},p{i // 2}" for i in range(40) for step in ("in", "out")]
    (tmp_path / "log.csv").write_text("\n".join(["nr,activity,time,person", *rows]) + "\n")
    log = files.read(tmp_path / "log.csv", case="nr")
    assert person_columns(log) == (PersonColumn("case:person", 20, 40, 2, 2, 40, True),)
    released = veilog.release(log, "travas", epsilon=1, delta="1e-3", unit="case:person", max_cases=2)
    assert released.guarantee.unit == "person"


def test_every_column_is_told_with_its_kind() -> None:
    log = files.read(hospital())
    told = {a.name: (a.level, a.kind, a.values, a.missing) for a in attributes_of(log)}
    assert told == {
        "person": ("case", "whole number", 399, 0),
        "Patient": ("event", "text", 399, 0),
        "ward": ("event", "text", 12, 0),
        "weight": ("event", "number", 300, 0),
        "born": ("event", "time", 300, 0),
        "urgent": ("event", "boolean", 2, 0),
        "nurse": ("event", "text", 500, 0),
        "invoice": ("event", "text", 800, 0),
        "clinic": ("event", "text", 1, 0),
    }
    assert transitions_of(log) is None
    steps = hospital().append_column("lifecycle:transition", pa.array(["start", "complete", "complete", None] * 400))
    assert transitions_of(files.read(steps)) == {"complete": 800, "start": 400}


def test_amounts_with_a_decimal_comma_name_nobody(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    rows = [f"{i};order;2024-01-01T00:00:00Z;{i // 2},50;K-{i // 2}" for i in range(40)]
    path.write_text("\n".join(["case;activity;timestamp;amount;customer", *rows]))
    log = files.read(path)
    assert [column.column for column in person_columns(log)] == ["customer"]
    assert {column.column for column in unit_columns(log)} == {"amount", "customer"}


def test_counts_alone_make_no_person() -> None:
    """Columns with the counts of patients but other names are no columns of persons.

    The made-up log has the shape of BPIC 2011: 1,143 cases, and columns that are constant in each (seed 11).
    """
    rng = np.random.default_rng(11)
    cases = 1_143
    columns = {"Diagnosis": 190, "Diagnosis code": 150, "Age": 120, "Treatment code": 180, "Patient": 700}
    values = {name: rng.integers(0, number, cases) for name, number in columns.items()}
    table = pa.table(
        {"case": [f"v{i}" for i in range(cases)], "activity": ["in"] * cases}
        | {"time": pa.array(range(cases), pa.timestamp("s"))}
        | {name: [str(value) for value in found.tolist()] for name, found in values.items()}
    )
    log = files.read(table)
    assert [column.column for column in person_columns(log)] == ["Patient"]
    assert person_columns(files.read(table.drop_columns(["Patient"]))) == ()
    assert {column.column for column in unit_columns(log)} == set(columns)  # by the user's word
    found = veilog.release(files.read(table.drop_columns(["Patient"])), "travas", epsilon=1, delta="1e-3", seed=1)
    assert not [note for note in found.owner_only.notes if "Diagnosis" in str(note)]


@pytest.mark.parametrize(
    "name",
    [
        "Patient",
        "patient_id",
        "PatientID",
        "case:person",
        "KundenNr",
        "Kundennummer",
        "kunde",
        "Bürger",
        "Klantnummer",
        "klant",
        "aanvrager",
        "BSN",
        "pid",
        "Numéro assuré",
        "identifiant_du_patient",
        "codeClient",
        "subject_id",
        "customer",
        "case:applicant",
        "policy_holder_no",
        "hashed_patient_id",
        "Versichertennummer",
        "id_persona",
    ],
)
def test_names_of_persons(name: str) -> None:
    assert names_persons(name)


@pytest.mark.parametrize(
    "name",
    [
        "Diagnosis",
        "Age",
        "Treatment code",
        "Resource",
        "org:resource",
        "Employee",
        "PatientAge",
        "patient_class",
        "customer type",
        "Kundengruppe",
        "âge_patient",
        "type_client",
        "date_naissance_patient",
        "ward",
        "subject",
        "landRegisterID",
        "personnel_number",
        "impersonation",
        "outpatient",
        "Anzahl_Kunden",
        "customer_service",
    ],
)
def test_names_of_what_is_no_person(name: str) -> None:
    assert not names_persons(name)
