"""Messy files made of one small log: how each is read, its findings, its events.

The table in docs/how-to/messy-files.md is this list; a test keeps them equal.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

EVENTS = (
    ("P1", "Aufnahme", "2024-03-13 08:15:00", "Müller"),
    ("P1", "Labor", "2024-03-13 09:40:00", "Ay"),
    ("P1", "Entlassung", "2024-03-25 16:05:00", "Müller"),
    ("P2", "Aufnahme", "2024-03-14 10:00:00", "Ay"),
    ("P2", "Entlassung", "2024-03-26 11:30:00", "Ay"),
)
"""Case, activity, time and physician of each event, in every file and every log."""
ZONE = "timestamp-without-zone"


@dataclass(frozen=True)
class Mess:
    """Messy file with its expected findings."""

    what: str
    name: str
    make: Callable[[], bytes]
    said: tuple[str, ...] = (ZONE,)
    """Findings; for a refused file, one sentence of the error."""
    options: dict[str, Any] = field(default_factory=dict)
    kept: str = ""
    """Fate of the physician, or of other content, in words."""
    events: tuple[tuple[str | None, ...], ...] = tuple(event[:3] for event in EVENTS)
    attribute: str | None = "physician"
    """Attribute of the physician, if there is one."""
    refused: bool = False

    @property
    def row(self) -> str:
        """Return the row of the table in the docs."""
        options = " ".join(_option(name, value) for name, value in self.options.items())
        given = f"`{options}`" if options else ""
        if self.refused:
            return f"| {self.what} | {given} | refused: *{_escaped(self.said[0])}* | |"
        cases = len({event[0] for event in self.events})
        counts = f"{cases} cases, {len(self.events)} events" if cases else "no case"
        said = ", ".join(f"`{rule}`" for rule in self.said)
        return f"| {self.what} | {given} | {said} | {counts}{'; ' if self.kept else ''}{self.kept} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _option(name: str, value: Any) -> str:
    if name == "policies":
        return " ".join(f"--on {rule}={policy}" for rule, policy in value.items())
    return (
        f"--{name.replace('_', '-')} '{value}'"
        if " " in str(value) or "+" in str(value)
        else (f"--{name.replace('_', '-')} {value}")
    )


def _time(text: str, pattern: str) -> str:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").strftime(pattern)


def text(
    header: str = "case,activity,timestamp,physician",
    *,
    pattern: str = "%Y-%m-%d %H:%M:%S",
    before: str = "",
    after: str = "",
    encoding: str = "utf-8",
    row: Callable[[tuple[str, ...]], list[str]] | None = None,
) -> Callable[[], bytes]:
    """Return the log as text with the delimiter of the header."""
    sign = next((sign for sign in ";\t|," if sign in header), ",")

    def made() -> bytes:
        rows = [list(event) if row is None else row(event) for event in EVENTS]
        for values, event in zip(rows, EVENTS, strict=True):
            if row is None:
                values[2] = _time(event[2], pattern)
        lines = [header] * bool(header) + [sign.join(values) for values in rows]
        return (before + "\n".join(lines) + "\n" + after).encode(encoding)

    return made


def _epoch(event: tuple[str, ...], factor: float) -> list[str]:
    seconds = (datetime.fromisoformat(event[2]) - datetime(1970, 1, 1)).total_seconds()
    return [*event[:2], f"{seconds * factor:.0f}", event[3]]


def _parted(event: tuple[str, ...]) -> list[str]:
    return [*event[:2], _time(event[2], "%d.%m.%Y"), _time(event[2], "%H:%M"), event[3]]


def _with_start(event: tuple[str, ...]) -> list[str]:
    return [*event[:2], event[2].replace(":00:00", ":30:00")[:11] + "07:00:00", event[2], event[3]]


def _without_end(event: tuple[str, ...]) -> list[str]:
    """Return the row with a start, and an end unless the event is the laboratory's."""
    case, label, start, end, physician = _with_start(event)
    return [case, label, start, "" if label == "Labor" else end, physician]


STARTS = tuple((event[0], event[1], event[2][:11] + "07:00:00") for event in EVENTS)
HALVES = tuple(start if start[1] == "Labor" else event[:3] for start, event in zip(STARTS, EVENTS, strict=True))
BOTH = tuple(one for start, event in zip(STARTS, EVENTS, strict=True) for one in (start, event[:3]))


def book(**sheets: list[list[Any]]) -> Callable[[], bytes]:
    """Return a workbook with these sheets."""

    def made() -> bytes:
        openpyxl = pytest.importorskip("openpyxl")
        workbook = openpyxl.Workbook()
        workbook.remove(workbook.active)
        for name, rows in sheets.items():
            sheet = workbook.create_sheet(name)
            for row in rows:
                sheet.append(row)
        out = io.BytesIO()
        workbook.save(out)
        return out.getvalue()

    return made


TABLE: list[list[Any]] = [
    ["case", "activity", "timestamp", "physician"],
    *([*event[:2], datetime.fromisoformat(event[2]), event[3]] for event in EVENTS),
]
PARTED: list[list[Any]] = [
    ["Fallnummer", "Maßnahme", "Datum", "Uhrzeit", "physician"],
    *(
        [*event[:2], datetime.fromisoformat(event[2]).date(), datetime.fromisoformat(event[2]).time(), event[3]]
        for event in EVENTS
    ),
]


def packed(files: dict[str, Callable[[], bytes]]) -> Callable[[], bytes]:
    """Return a zip with these files."""

    def made() -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, make in files.items():
                archive.writestr(name, make())
        return out.getvalue()

    return made


def xes(*, times: bool = True, cut: int = 0) -> Callable[[], bytes]:
    """Return the log in XES."""

    def made() -> bytes:
        traces = []
        for case in ("P1", "P2"):
            parts = [f"<trace><string key='concept:name' value='{case}'/>"]
            for event in EVENTS:
                if event[0] != case:
                    continue
                time = f"<date key='time:timestamp' value='{event[2].replace(' ', 'T')}Z'/>" if times else ""
                name = f"<string key='concept:name' value='{event[1]}'/>"
                parts.append(f"<event>{name}{time}<string key='physician' value='{event[3]}'/></event>")
            traces.append("".join(parts) + "</trace>")
        whole = f"<log>{''.join(traces)}</log>".encode()
        return whole[: len(whole) - cut]

    return made


OBJECTS = {"P1": "patient", "P2": "patient", "P3": "patient", "B7": "bed"}
LINKS = ((0, ("P1", "B7")), (1, ("P1",)), (2, ("P1", "B7")), (3, ("P2",)), (4, ("P2",)))
"""Objects of each event; one more event has the bed alone, and P3 has no event."""
OCEL_SAID = ("event-without-object", "object-without-event", "not-flat", ZONE)


def ocel_json() -> bytes:
    events = [
        {
            "id": f"e{place}",
            "type": EVENTS[place][1],
            "time": EVENTS[place][2],
            "attributes": [{"name": "physician", "value": EVENTS[place][3]}],
            "relationships": [{"objectId": name, "qualifier": ""} for name in names],
        }
        for place, names in LINKS
    ]
    events.append(
        {"id": "e5", "type": "Reinigung", "time": "2024-03-27 08:00:00", "relationships": [{"objectId": "B7"}]}
    )
    objects = [{"id": name, "type": kind, "attributes": []} for name, kind in OBJECTS.items()]
    return json.dumps({"objectTypes": [], "eventTypes": [], "objects": objects, "events": events}).encode()


def ocel_xml() -> bytes:
    found = json.loads(ocel_json())
    events = []
    for event in found["events"]:
        held = "".join(f"<attribute name='{a['name']}'>{a['value']}</attribute>" for a in event.get("attributes", ()))
        links = "".join(f"<relationship object-id='{r['objectId']}' qualifier=''/>" for r in event["relationships"])
        said = f"id='{event['id']}' type='{event['type']}' time='{event['time']}'"
        events.append(f"<event {said}><attributes>{held}</attributes><objects>{links}</objects></event>")
    objects = "".join(f"<object id='{name}' type='{kind}'><attributes/></object>" for name, kind in OBJECTS.items())
    return f"<log><objects>{objects}</objects><events>{''.join(events)}</events></log>".encode()


def ocel_sqlite() -> bytes:
    base = sqlite3.connect(":memory:")
    base.executescript(
        "CREATE TABLE event (ocel_id, ocel_type); CREATE TABLE object (ocel_id, ocel_type);"
        "CREATE TABLE event_map_type (ocel_type, ocel_type_map);"
        "CREATE TABLE object_map_type (ocel_type, ocel_type_map);"
        "CREATE TABLE event_object (ocel_event_id, ocel_object_id, ocel_qualifier);"
    )
    for event in json.loads(ocel_json())["events"]:
        kind = event["type"]
        base.execute(f"CREATE TABLE IF NOT EXISTS event_{kind} (ocel_id, ocel_time, physician)")
        base.execute("INSERT INTO event VALUES (?, ?)", (event["id"], kind))
        physician = next((attribute["value"] for attribute in event.get("attributes", ())), None)
        base.execute(f"INSERT INTO event_{kind} VALUES (?, ?, ?)", (event["id"], event["time"], physician))
        for link in event["relationships"]:
            base.execute("INSERT INTO event_object VALUES (?, ?, '')", (event["id"], link["objectId"]))
    kinds = [(kind, kind) for (kind,) in base.execute("SELECT DISTINCT ocel_type FROM event")]
    base.executemany("INSERT INTO event_map_type VALUES (?, ?)", kinds)
    base.executemany("INSERT INTO object VALUES (?, ?)", OBJECTS.items())
    base.commit()
    return base.serialize()


def _plain(content: bytes) -> Callable[[], bytes]:
    return lambda: content


CSV = text()
GERMAN = "Fallnr;Maßnahme;Zeitstempel;physician"
TITLE = "title-lines"

MESSY = (
    # usual names, delimiters, encodings
    Mess("German names (`Fallnr`, `Maßnahme`), semicolons, `13.03.2024 08:15`", "a.csv",
         text(GERMAN, pattern="%d.%m.%Y %H:%M")),
    Mess("French names (`numéro de dossier`, `activité`, `horodatage`)", "a.csv",
         text("numéro de dossier;activité;horodatage;physician")),
    Mess("Dutch names (`zaaknr`, `activiteit`, `tijdstip`)", "a.csv", text("zaaknr;activiteit;tijdstip;physician")),
    Mess("a byte order mark before the header", "a.csv", text(encoding="utf-8-sig")),
    Mess("Windows-1252", "a.csv", text(GERMAN.replace("ß", "ss"), encoding="cp1252"), ("not-utf8", ZONE)),
    Mess("UTF-16", "a.csv", text(GERMAN, encoding="utf-16")),
    Mess("tabs, in a file called .csv", "a.csv", text("case\tactivity\ttimestamp\tphysician")),
    Mess("vertical lines between the columns", "a.csv", text("case|activity|timestamp|physician")),
    Mess("further columns without a name", "a.csv", text("case,activity,timestamp,,", row=lambda e: [*e, ""]),
         kept="the column is called by its place", attribute="column 4"),
    Mess("names that nobody could guess", "a.csv", text("a,b,c,physician"), ("No column looks like the case.",),
         refused=True),
    Mess("the same, declared", "a.csv", text("a,b,c,physician"),
         options={"case": "a", "activity": "b", "timestamp": "c"}),
    # lines before the header, no header
    Mess("lines of a title before the header", "a.csv",
         text(GERMAN, before="Export KIS vom 01.04.2024\nStation 3\n\n"), (TITLE, ZONE)),
    Mess("a title with the delimiters of a spreadsheet", "a.csv", text(GERMAN, before="Export KIS;;;\n;;;\n"),
         (TITLE, ZONE)),
    Mess("a title with commas above columns with semicolons", "a.csv",
         text(GERMAN, before="Export, KIS, Station 3, April\n"), (TITLE, ZONE)),
    Mess("a header that is said to be on line 2", "a.csv", text("a,b,c,physician", before="x,y,z,w\n"), (TITLE, ZONE),
         {"header": 2, "case": "a", "activity": "b", "timestamp": "c"}),
    Mess("no header", "a.csv", text(""), ("The first line looks like data, not like names of columns",), refused=True),
    Mess("no header, declared", "a.csv", text(""),
         options={"header": 0, "case": "column 1", "activity": "column 2", "timestamp": "column 3"},
         attribute="column 4"),
    # times
    Mess("date and time of day in two columns", "a.csv", text("Fallnr;Maßnahme;Datum;Uhrzeit;physician", row=_parted),
         ("date-and-time", ZONE)),
    Mess("the same, as databases export it (`1899-12-30 08:15`)", "a.csv",
         text("case,activity,date,time,physician",
              row=lambda e: [*e[:2], e[2][:10] + " 00:00:00", "1899-12-30 " + e[2][11:], e[3]]),
         ("date-and-time", ZONE)),
    Mess("the same, with other names", "a.csv", text("case,activity,served on,at,physician", row=_parted),
         ("date-and-time", ZONE), {"timestamp": "served on+at"}),
    Mess("seconds since 1970", "a.csv", text(row=lambda e: _epoch(e, 1)), ("epoch-numbers",)),
    Mess("milliseconds since 1970", "a.csv", text(row=lambda e: _epoch(e, 1000)), ("epoch-numbers",)),
    Mess("numbers that are no times", "a.csv", text(row=lambda e: [*e[:2], "4711", e[3]]),
         ("A timestamp cannot be read: '4711'.",), refused=True),
    Mess("`03/13/2024 08:15 AM`", "a.csv", text(pattern="%m/%d/%Y %I:%M %p")),
    Mess("`3/4/2024`, which may be March or April", "a.csv", text(row=lambda e: [*e[:2], "3/4/2024 08:15", e[3]]),
         ("is ambiguous: it can mean day/month or month/day.",), refused=True),
    Mess("both orders of day and month", "a.csv",
         text(row=lambda e: [*e[:2], "25/3/2024" if e[1] == "Labor" else "3/25/2024", e[3]]),
         ("Dates mix day-first and month-first: '25/3/2024' and '3/25/2024'.",), refused=True),
    Mess("an event without a time", "a.csv", text(after="P2,Labor,,Ay\n"),
         ("An event has no timestamp although others have one",), refused=True),
    Mess("the same, left out", "a.csv", text(after="P2,Labor,,Ay\n"), ("missing-timestamp", ZONE),
         {"policies": {"missing-timestamp": "drop"}}, kept="the event is left out and counted"),
    Mess("an event without an activity", "a.csv", text(after="P2,,2024-03-26 12:00:00,Ay\n"),
         ("event-without-activity", ZONE), kept="the event is left out and counted"),
    Mess("a row without a case", "a.csv", text(after=",Labor,2024-03-26 12:00:00,Ay\n"),
         ("case-without-name", ZONE), kept="the row is a case of its own", attribute=None,
         events=(*(event[:3] for event in EVENTS), (None, "Labor", "2024-03-26 12:00:00"))),
    Mess("a row that stands there twice", "a.csv", text(after="P2,Entlassung,2024-03-26 11:30:00,Ay\n"),
         ("repeated-event", ZONE), {"policies": {"repeated-event": "drop"}}, kept="the second one is left out"),
    # life cycles
    Mess("a start and an end in each row", "a.csv",
         text("case,activity,start_time,end_time,physician", row=_with_start),
         ("start-and-end", ZONE), kept="the end is the time, `start_time` an attribute"),
    Mess("the same, by starts", "a.csv", text("case,activity,start_time,end_time,physician", row=_with_start),
         options={"lifecycle": "start"}, kept="the start is the time, `end_time` an attribute", events=STARTS),
    Mess("the same, as two events", "a.csv", text("case,activity,start_time,end_time,physician", row=_with_start),
         options={"lifecycle": "all"}, kept="each row is a start and a complete", events=BOTH),
    Mess("the same, as one event that says when it began", "a.csv",
         text("case,activity,start_time,end_time,physician", row=_with_start),
         options={"lifecycle": "intervals"}, kept="the end is the time, `start_timestamp` the start"),
    Mess("the same, where ends are missing", "a.csv",
         text("case,activity,start_time,end_time,physician", row=_without_end),
         ("An event has only one of its start and its end",), refused=True),
    Mess("the same, with the start in their place", "a.csv",
         text("case,activity,start_time,end_time,physician", row=_without_end),
         ("one-time-missing", "start-and-end", ZONE), {"policies": {"one-time-missing": "keep"}},
         kept="such an event is at its start", events=HALVES),
    Mess("the same, where the start has another name", "a.csv",
         text("case,activity,from,end_time,physician", row=_with_start),
         options={"start": "from", "lifecycle": "intervals"}, kept="the end is the time, `start_timestamp` the start"),
    Mess("starts and completes as rows", "a.csv",
         text("case,activity,timestamp,physician,transition",
              row=lambda e: [*e, "start\n" + ",".join([*e, "complete"])]),
         ("lifecycle-transitions", ZONE), kept="every one counts, until `--lifecycle complete` says otherwise",
         events=tuple(event[:3] for event in EVENTS for _ in range(2))),
    Mess("the same, as one event", "a.csv",
         text("case,activity,timestamp,physician,transition",
              row=lambda e: [*e, "start\n" + ",".join([*e, "complete"])]),
         options={"lifecycle": "intervals"}, kept="a start and its end are one event, which has a `start_timestamp`"),
    Mess("numbers with a decimal comma", "a.csv",
         text("case;activity;timestamp;physician;cost", row=lambda e: [*e, "1.234,56"]),
         options={"decimal": ","}, kept="the cost is a number"),
    Mess("a row for each case, a column for each step", "a.csv",
         lambda: (b"case,Aufnahme,Labor,Entlassung\nP1,2024-03-13 08:15,2024-03-13 09:40,2024-03-25 16:05\n"),
         ("The table seems to have a row for each case and a column for each step",), refused=True),
    # damage
    Mess("two columns of one name", "a.csv", text("case,activity,timestamp,case"), ("Two columns are called 'case'.",),
         refused=True),
    Mess("a row with a field too many", "a.csv", text(after="P2,Labor,2024-03-26,Ay,x\n"),
         ("This row has 5 fields, the header has 4.",), refused=True),
    Mess("a quote that is never closed", "a.csv", text(after='P2,"Labor,2024-03-26,Ay\n'),
         ("A quote is opened and never closed.",), refused=True),
    Mess("an empty file", "a.csv", _plain(b""), ("The file is empty.",), refused=True),
    Mess("a header and nothing else", "a.csv", _plain(b"case,activity,timestamp\n"), (), events=(), attribute=None),
    # workbooks
    Mess("a workbook of Excel, with dates as dates", "a.xlsx", book(Export=TABLE)),
    Mess("the same with a title, date and time of day apart, and a sheet of notes", "a.xlsx",
         book(Export=[["Export KIS"], [], *PARTED], Legende=[["Ay", "Dr. Ay"]]),
         ("date-and-time", "other-sheets", TITLE, ZONE)),
    Mess("two sheets with data", "a.xlsx", book(Januar=TABLE, Februar=TABLE),
         ("There are 2 sheets with data: 'Januar', 'Februar'.",), refused=True),
    Mess("the same, one chosen", "a.xlsx", book(Januar=TABLE, Februar=TABLE), ("other-sheets", ZONE),
         {"sheet": "Januar"}),
    Mess("an old workbook (.xls)", "a.xls", _plain(b"\xd0\xcf\x11\xe0"),
         ("save it as .xlsx or .csv.",), refused=True),
    Mess("a workbook with a password", "a.xlsx", _plain(b"\xd0\xcf\x11\xe0" + bytes(600)),
         ("This workbook has a password, or is one of Excel before 2007.",), refused=True),
    # archives
    Mess("a zip with one log", "a.zip", packed({"log.csv": CSV})),
    Mess("a zip with XES, and what a Mac puts beside it", "a.xes.zip",
         packed({"log.xes": xes(), "__MACOSX/._log.xes": CSV}), ()),
    Mess("a zip with a workbook", "a.zip", packed({"log.xlsx": book(Export=TABLE)})),
    Mess("a zip with a compressed log", "a.zip", packed({"log.csv.gz": lambda: gzip.compress(CSV())})),
    Mess("a zip with two logs", "a.zip", packed({"a.csv": CSV, "b.csv": CSV}),
         ("There are 2 files in this zip: 'a.csv', 'b.csv'.",), refused=True),
    Mess("a zip that unpacks to more than it may", "a.zip", packed({"log.csv": CSV}),
         ("The file unpacks to more than 99 bytes.",), {"limit": 99}, refused=True),
    Mess("another archive (.7z)", "a.csv.7z", _plain(b"7z"), ("Unpack it, or pack it as .gz, or alone as .zip.",),
         refused=True),
    # object-centric logs, XES
    Mess("an object-centric log (OCEL 2.0)", "a.json", ocel_json,
         ("one of them must be the case: 'patient' (3 objects, 5 events), 'bed' (1 object, 3 events).",), refused=True),
    Mess("the same, in JSON", "a.json", ocel_json, OCEL_SAID, {"object_type": "patient"},
         "what has no patient is counted"),
    Mess("the same, in XML", "a.xml", ocel_xml, OCEL_SAID, {"object_type": "patient"},
         "what has no patient is counted"),
    Mess("the same, in SQLite", "a.sqlite", ocel_sqlite, OCEL_SAID, {"object_type": "patient"},
         "what has no patient is counted"),
    Mess("JSON of another kind", "a.json", _plain(b'[{"case": 1}]'), ("This JSON is no object-centric log.",),
         refused=True),
    Mess("XES that is called .xml", "a.xml", xes(), ("Call the file .xes.",), refused=True),
    Mess("XES without times", "a.xes", xes(times=False), ("no-timestamps",), kept="in the order of the file",
         events=tuple((*event[:2], "") for event in EVENTS)),
    Mess("XES that ends too early", "a.xes", xes(cut=40), ("the file is truncated",), refused=True),
)  # fmt: skip
