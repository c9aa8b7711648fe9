"""Object-centric logs: flattened as pm4py does it, and what that loses is counted."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EventLog

OBJECTS = {"o1": "order", "o2": "order", "o3": "order", "i1": "item", "i2": "item"}
EVENTS = (
    ("e1", "place", "2023-05-01T10:00:00Z", ("o1", "i1", "i2"), "web"),
    ("e2", "pick", "2023-05-01T11:00:00Z", ("o1", "i1"), "Ann"),
    ("e3", "pick", "2023-05-01T12:00:00Z", ("o1", "i2"), "Bob"),
    ("e4", "ship", "2023-05-02T12:00:00Z", ("o1", "o2"), "van"),
    ("e5", "restock", "2023-05-03T12:00:00Z", ("i2",), "Bob"),
)
FINDINGS = {
    "event-in-several-cases": (1, "'e4' is in 2 cases"),
    "event-without-object": (1, "'e5' (restock) has no object of the type 'order'"),
    "object-without-event": (1, "'order' 'o3'"),
    "events-of-other-objects": (1, "case 'o1' has 'pick' 2 times, for different objects"),
    "not-flat": (4, "objects of other types: 2, relations between objects: 1, later values of attributes: 1"),
}


def document(**changes: Any) -> dict[str, Any]:
    objects = [{"id": name, "type": kind} for name, kind in OBJECTS.items()]
    price = [
        {"name": "price", "time": f"{year}-01-01T00:00:00Z", "value": value} for year, value in ((1970, 5), (2023, 6))
    ]
    objects[0] |= {"attributes": price, "relationships": [{"objectId": "i1", "qualifier": "has"}]}
    events = [
        {
            "id": name,
            "type": kind,
            "time": time,
            "attributes": [{"name": "by", "value": by}],
            "relationships": [{"objectId": one, "qualifier": ""} for one in objects_],
        }
        for name, kind, time, objects_, by in EVENTS
    ]
    types = [
        {"name": "order", "attributes": [{"name": "price", "type": "integer"}]},
        {"name": "item", "attributes": []},
    ]
    kinds = [
        {"name": kind, "attributes": [{"name": "by", "type": "string"}]}
        for kind in ("place", "pick", "ship", "restock")
    ]
    return {"objectTypes": types, "eventTypes": kinds, "objects": objects, "events": events} | changes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "log.json"
    place.write_text(json.dumps(document()))
    return place


def lost(log: EventLog) -> list[int]:
    """Return the number of facts of each kind that have no place in the flat log."""
    (found,) = (finding for finding in log.findings if finding.rule == "not-flat")
    counts = [int(count) for count in re.findall(r": (\d+)", str(found.example))]
    assert sum(counts) == found.count
    return counts


def rows(log: EventLog) -> set[tuple[str, str, str]]:
    names = log.cases[ACTIVITY].to_pylist()
    held = zip(*(log.events[name].to_pylist() for name in (CASE_INDEX, ACTIVITY, "ocel:eid")), strict=True)
    return {(names[case], label, event) for case, label, event in held}


def test_an_event_is_in_the_case_of_each_of_its_objects_and_what_is_lost_is_counted(path: Path) -> None:
    log = veilog.read(path, object_type="order")
    expected = {(o, kind, name) for name, kind, _, objects, _ in EVENTS for o in objects if OBJECTS[o] == "order"}
    assert rows(log) == expected
    assert {finding.rule: (finding.count, str(finding.example)) for finding in log.findings} == FINDINGS
    assert log.cases["price"].to_pylist() == [5, None]  # the first value, as an attribute of the case
    assert log.events["by"].to_pylist() == ["web", "Ann", "Bob", "van", "van"]
    assert veilog.read_variants(path, object_type="order") == log.variants


def test_each_type_is_another_log(path: Path) -> None:
    items = veilog.read(path, object_type="item")
    assert {case for case, _, _ in rows(items)} == {"i1", "i2"}
    assert items.variants.to_dict() == {("place", "pick"): 1, ("place", "pick", "restock"): 1}


@pytest.mark.slow
def test_all_formats_hold_what_pm4py_flattens(path: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        import pm4py

        whole = pm4py.read_ocel2_json(str(path))
        pm4py.write_ocel2_xml(whole, str(tmp_path / "log.xml"))
        pm4py.write_ocel2_sqlite(whole, str(tmp_path / "log.sqlite"))
        flat = pm4py.ocel_flattening(whole, "order")
    names = ("case:concept:name", "concept:name", "ocel:eid")
    expected = set(zip(*(flat[name].tolist() for name in names), strict=True))
    for suffix in ("json", "xml", "sqlite"):
        log = veilog.read(tmp_path / f"log.{suffix}", object_type="order")
        assert rows(log) == expected, suffix
        counts = {finding.rule: finding.count for finding in log.findings}
        for rule in ("event-in-several-cases", "event-without-object", "events-of-other-objects", "not-flat"):
            assert counts[rule] == FINDINGS[rule][0], suffix
        assert log.cases["price"].to_pylist() == [5, None]


def test_a_finding_may_stop_the_reading(path: Path) -> None:
    with refused(InputError, "finding-with-example", rule="event-in-several-cases", example="'e4' is in 2 cases"):
        veilog.read(path, object_type="order", policies={"event-in-several-cases": "fail"})


def test_a_log_with_one_type_of_objects_needs_no_word_about_it(tmp_path: Path) -> None:
    place = tmp_path / "log.json"
    objects = [{"id": name, "type": kind} for name, kind in OBJECTS.items() if kind == "order"]
    place.write_text(json.dumps(document(objects=objects)))
    log = veilog.read(place)
    assert log.cases.num_rows == 2
    assert lost(log)[-1] == 5, "what events name and nothing lists"


@pytest.mark.parametrize(
    ("content", "code", "values"),
    [
        (b"{", "ocel-not-json", {}),
        (b"[" * 100_000, "ocel-not-json", {}),
        (b"{}", "ocel-json-not-log", {}),
        (b'{"ocel:events": {}}', "ocel-version-not-read", {}),
        (json.dumps(document(objects=[])).encode(), "ocel-without-objects", {}),
        (
            json.dumps(document(objects=[{"id": "o1", "type": "a"}] * 2)).encode(),
            "ocel-name-twice",
            {"what": "objects", "found": "o1"},
        ),
        (
            json.dumps(document(events=[{"id": "e1"}] * 2)).encode(),
            "ocel-name-twice",
            {"what": "events", "found": "e1"},
        ),
        (json.dumps(document(events=[{"id": "e1"}, {}])).encode(), "ocel-json-malformed", {"kind": "KeyError"}),
        (b"", "ocel-not-json", {}),
        (b'{"events": [], "events": [], "objects": []}', "ocel-not-json", {}),
        (
            json.dumps(document(objects=[{"id": None, "type": "order"}])).encode(),
            "ocel-name-invalid",
            {"name": "None"},
        ),
        (
            json.dumps(document(events=[{"id": "e", "relationships": [{"objectId": None}]}])).encode(),
            "ocel-name-invalid",
            {"name": "None"},
        ),
        (json.dumps(document(objects=[{"id": "\ud800", "type": "order"}])).encode(), "ocel-not-json", {}),
        (
            json.dumps(document(events=[{"id": "e", "attributes": [{"name": None, "value": 1}]}])).encode(),
            "ocel-json-malformed",
            {"kind": "TypeError"},
        ),
    ],
)
def test_json_of_another_kind_is_refused(tmp_path: Path, content: bytes, code: str, values: dict[str, str]) -> None:
    place = tmp_path / "log.json"
    place.write_bytes(content)
    with refused(InputError, code, **values) as caught:
        veilog.read(place, object_type="order")
    assert "log.json" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("<!DOCTYPE log [<!ENTITY a 'x'>]><log>&a;</log>", "xml-entity-declared"),
        ("<!DOCTYPE log SYSTEM 'file:///log.dtd'><log><objects/><events/></log>", "xml-document-type-outside"),
        ("<log><events><event id='e'/><event id='e'/></events></log>", "ocel-name-twice"),
        ("<ocel/>", "ocel-root-not-log"),
        ("<log><global scope='event'/></log>", "ocel-version-not-read"),
        ("<log><objects><object type='a'/></objects></log>", "ocel-attribute-missing"),
        ("<log><objects>", "xml-truncated"),
        ("<log><objects/><events/></log>", "ocel-without-objects"),
        ("", "file-empty"),
        (
            "<log><objects><object id='a'><attributes><attribute name='n'>5<b>6</b></attribute>",
            "ocel-element-in-value",
        ),
    ],
)
def test_xml_of_another_kind_is_refused(tmp_path: Path, content: str, code: str) -> None:
    place = tmp_path / "log.xml"
    place.write_text(content)
    with refused(InputError, code) as caught:
        veilog.read(place, object_type="order")
    assert caught.value.path == str(place)


def test_only_tables_of_a_database_are_read(tmp_path: Path) -> None:
    """A view may compute anything at all, also without end."""
    place = tmp_path / "log.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as base:
        for name in ("object", "event_map_type", "object_map_type", "event_object"):
            base.execute(f"CREATE TABLE {name} (ocel_id, ocel_type)")
        base.execute(
            "CREATE VIEW event AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT x AS ocel_id, 'a' AS ocel_type FROM n"
        )
        base.commit()
    before = place.read_bytes()
    with refused(InputError, "ocel-table-missing", missing="event"):
        veilog.read(place)
    assert place.read_bytes() == before
    for content in (b"", b"no database", before[:5000]):
        place.write_bytes(content)
        with refused(InputError, "file-empty", "ocel-database-not-readable"):
            veilog.read(place)


def test_of_attributes_of_one_name_the_first_stays_in_every_format_and_the_others_are_counted(tmp_path: Path) -> None:
    """In JSON the last one stayed, and none was counted."""
    twice = [{"name": "by", "value": "Ann"}, {"name": "by", "value": "Bob"}]
    event = {"id": "e", "type": "a", "time": "2024-01-01", "relationships": [{"objectId": "o"}], "attributes": twice}
    (tmp_path / "log.json").write_text(json.dumps(document(events=[event], objects=[{"id": "o", "type": "order"}])))
    (tmp_path / "log.xml").write_text(
        "<log><objects><object id='o' type='order'/></objects><events><event id='e' type='a' time='2024-01-01'>"
        "<attributes><attribute name='by'>Ann</attribute><attribute name='by'>Bob</attribute></attributes>"
        "<objects><relationship object-id='o'/></objects></event></events></log>"
    )
    for name in ("log.json", "log.xml"):
        log = veilog.read(tmp_path / name)
        assert log.events["by"].to_pylist() == ["Ann"]
        assert lost(log) == [1], "the later value"


@pytest.mark.parametrize("place", ["last", "between"])
def test_declared_attributes_belong_to_no_event_and_no_object(tmp_path: Path, place: str) -> None:
    """Attributes of declared types belong to no event or object, wherever they stand."""
    declared = "<attributes><attribute name='x' type='string'/></attributes>"
    kinds = f"<event-types><event-type name='a'>{declared}</event-type></event-types>"
    objects = "<objects><object id='o' type='order'/></objects>"
    related = "<objects><relationship object-id='o'/></objects>"
    events = f"<events><event id='e' type='a' time='2024-01-01'>{related}</event></events>"
    content = [objects, events, kinds] if place == "last" else [objects, kinds, events]
    (tmp_path / "log.xml").write_text(f"<log>{''.join(content)}</log>")
    log = veilog.read(tmp_path / "log.xml")
    assert "x" not in log.events.column_names and "x" not in log.cases.column_names


DATABASE = """
CREATE TABLE event (ocel_id, ocel_type); CREATE TABLE object (ocel_id, ocel_type);
CREATE TABLE event_map_type (ocel_type, ocel_type_map); CREATE TABLE object_map_type (ocel_type, ocel_type_map);
CREATE TABLE event_object (ocel_event_id, ocel_object_id); CREATE TABLE {event} (ocel_id, {time}, by);
CREATE TABLE {object} (ocel_id, ocel_time, price);
INSERT INTO event_map_type VALUES ('pick', 'Pick'); INSERT INTO object_map_type VALUES ('order', 'Order');
INSERT INTO object VALUES ('o1', 'order'); INSERT INTO event VALUES ('e1', 'pick');
INSERT INTO event_object VALUES ('e1', 'o1'); INSERT INTO {event} VALUES ('e1', '2023-05-01T10:00:00Z', 'Ann');
INSERT INTO {object} VALUES ('o1', '1970-01-01', 5);
"""
NAMES = {"event": "event_Pick", "object": "object_Order", "time": "ocel_time"}


def database(place: Path, more: str = "", **names: str) -> Path:
    with contextlib.closing(sqlite3.connect(place)) as base:
        base.executescript(DATABASE.format(**{**NAMES, **names}) + more)
        base.commit()
    return place


def test_an_object_has_the_value_that_it_had_first_wherever_the_file_has_it(tmp_path: Path) -> None:
    """An object keeps its earliest value by time, across zones and orders of the file.

    The values are 7 in May, 5 at noon of New Year in UTC, and 6 an hour later in another zone.
    """
    told = {"2023-05-01T00:00:00Z": 7, "2023-01-01T12:00:00Z": 5, "2023-01-01T14:00:00+01:00": 6, "soon": 8}
    values = [{"name": "price", "time": time, "value": value} for time, value in told.items()]
    objects = [{"id": "o", "type": "order", "attributes": values}]
    event = {"id": "e", "type": "a", "time": "2024-01-01", "relationships": [{"objectId": "o"}]}
    (tmp_path / "log.json").write_text(json.dumps(document(events=[event], objects=objects)))
    elements = "".join(f"<attribute name='price' time='{time}'>{value}</attribute>" for time, value in told.items())
    (tmp_path / "log.xml").write_text(
        f"<log><objects><object id='o' type='order'><attributes>{elements}</attributes></object></objects>"
        "<events><event id='e' type='a' time='2024-01-01'><objects><relationship object-id='o'/></objects></event>"
        "</events></log>"
    )
    inserted = ", ".join(f"('o1', '{time}', {value})" for time, value in told.items())
    database(tmp_path / "log.sqlite", f"DELETE FROM object_Order; INSERT INTO object_Order VALUES {inserted}")
    for name in ("log.json", "log.xml", "log.sqlite"):
        log = veilog.read(tmp_path / name)
        assert log.cases["price"].to_pylist() == [5], name
        assert lost(log) == [3], "the later values"
    assert veilog.read(database(tmp_path / "without.sqlite")).cases["price"].to_pylist() == [5]


def test_a_value_without_a_time_is_how_an_object_was_at_the_beginning(tmp_path: Path) -> None:
    values = [{"name": "price", "time": "2023-01-01", "value": 7}, {"name": "price", "value": 5}]
    objects = [{"id": "o1", "type": "order", "attributes": [*values, {"name": "price", "value": 6}]}]
    (tmp_path / "log.json").write_text(json.dumps(document(objects=objects)))
    assert veilog.read(tmp_path / "log.json").cases["price"].to_pylist() == [5]


def test_tables_of_a_database_are_found_in_upper_and_lower_case(tmp_path: Path) -> None:
    """Tables of SQLite are found in any case, with their times and attributes."""
    log = veilog.read(database(tmp_path / "log.sqlite", event="EVENT_pick", object="object_order"))
    assert log.events["by"].to_pylist() == ["Ann"] and log.cases["price"].to_pylist() == [5]
    assert log.events["time:timestamp"].null_count == 0


@pytest.mark.parametrize(
    ("more", "names", "code", "values"),
    [
        ("", {"event": "event_other"}, "ocel-type-table-missing", {"mapped": "Pick"}),
        ("", {"object": "object_other"}, "ocel-type-table-missing", {"mapped": "Order"}),
        ("", {"time": "moment"}, "ocel-table-column-missing", {"table": "event_Pick", "missing": "ocel_time"}),
        ("INSERT INTO object VALUES (NULL, 'order')", {}, "ocel-name-invalid", {"name": "None"}),
        ("INSERT INTO event_object VALUES ('e1', NULL)", {}, "ocel-name-invalid", {"name": "None"}),
        ("INSERT INTO event_object VALUES ('e1', x'6f31')", {}, "ocel-name-invalid", {"name": "b'o1'"}),
    ],
)
def test_what_of_a_database_would_be_lost_or_taken_for_another_is_refused(
    tmp_path: Path, more: str, names: dict[str, str], code: str, values: dict[str, str]
) -> None:
    with refused(InputError, code, **values):
        veilog.read(database(tmp_path / "log.sqlite", more, **names))


def test_rows_of_what_a_database_does_not_list_are_counted(tmp_path: Path) -> None:
    more = "INSERT INTO event_Pick VALUES ('e2', '2024-01-01', 'Bob'); INSERT INTO event_object VALUES ('e2', 'o1');"
    log = veilog.read(database(tmp_path / "log.sqlite", more))
    assert lost(log) == [2], "one of each table"


@pytest.mark.parametrize("table", ["event", "event_pick"])
def test_two_events_of_one_name_in_a_database_are_refused(tmp_path: Path, table: str) -> None:
    """The later one would stand in the cases of the first one too."""
    place = tmp_path / "log.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as base:
        base.executescript(
            "CREATE TABLE event (ocel_id, ocel_type); CREATE TABLE object (ocel_id, ocel_type);"
            "CREATE TABLE event_map_type (ocel_type, ocel_type_map);"
            "CREATE TABLE object_map_type (ocel_type, ocel_type_map);"
            "CREATE TABLE event_object (ocel_event_id, ocel_object_id); CREATE TABLE event_pick (ocel_id, ocel_time);"
            "INSERT INTO event_map_type VALUES ('pick', 'pick'); INSERT INTO object VALUES ('o1', 'order');"
            "INSERT INTO event VALUES ('e1', 'pick'); INSERT INTO event_object VALUES ('e1', 'o1');"
            "INSERT INTO event_pick VALUES ('e1', '2023-05-01T10:00:00Z');"
        )
        assert len(veilog.read(place)) == 1
        base.execute(f"INSERT INTO {table} VALUES ('e1', '2024-05-01T10:00:00Z')")
        base.commit()
    with refused(InputError, "ocel-name-twice", what="events", found="e1"):
        veilog.read(place)


def test_a_database_that_is_being_written_is_refused(tmp_path: Path) -> None:
    """A database with a write-ahead file is refused, as that content would be lost."""
    place = tmp_path / "log.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("CREATE TABLE event (ocel_id, ocel_type)")
        base.commit()
        with refused(InputError, "ocel-database-unfinished"):
            veilog.read(place)


def test_an_unknown_type_is_refused_with_those_that_there_are(path: Path) -> None:
    with refused(InputError, "ocel-type-unknown", wanted="orders"):
        veilog.read(path, object_type="orders")
