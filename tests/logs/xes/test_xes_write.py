"""Written XES comes back the same, and equal logs give equal bytes."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from xes_oracle import assert_same, facts, oracle

from veilog.errors import OutputError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LABEL_TYPE, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.xes.reader import read_xes
from veilog.logs.xes.writer import write_xes

TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\ufffe\uffff", exclude_categories=("Cs", "Cc")), max_size=8
)
AWKWARD = st.one_of(
    TEXT, st.sampled_from(["", "NA", " a ", "a\nb", "\t\r\n", "<&>\"'", "]]>", "&amp;", "{}", "\x85\u2028"])
)
KEYS = st.sampled_from(
    ["k", "case:index", "event:index", "xes:nested", "k (int)", "concept:instance", "a&b", "time:timestamp x"]
)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)).map(lambda d: d.replace(tzinfo=UTC))
VALUES = st.one_of(
    st.tuples(st.just("string"), AWKWARD),
    st.tuples(st.just("id"), AWKWARD),
    st.tuples(st.just("int"), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just("float"), st.floats(allow_nan=False)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("date"), MOMENTS),
)
SCALAR_ATTRIBUTES = st.builds(lambda k, v: Attribute(k, v[1], v[0]), AWKWARD, VALUES)
ATTRIBUTES = st.recursive(
    SCALAR_ATTRIBUTES,
    lambda inner: st.one_of(
        st.builds(lambda a, c: replace(a, children=tuple(c)), SCALAR_ATTRIBUTES, st.lists(inner, max_size=2)),
        st.builds(
            lambda k, t, c: Attribute(k, None, t, tuple(c)),
            AWKWARD,
            st.sampled_from(["list", "container"]),
            st.lists(inner, max_size=3),
        ),
    ),
    max_leaves=5,
)
ELEMENTS = st.tuples(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(ATTRIBUTES, max_size=2))
EVENTS = st.tuples(AWKWARD, MOMENTS, ELEMENTS)
CASES = st.tuples(AWKWARD, ELEMENTS, st.lists(EVENTS, max_size=4))
METADATA = st.builds(
    Metadata,
    features=st.none() | AWKWARD,
    version=AWKWARD,
    extensions=st.lists(st.tuples(AWKWARD, AWKWARD, AWKWARD), max_size=2).map(tuple),
    globals=st.lists(st.tuples(AWKWARD, st.lists(ATTRIBUTES, max_size=2).map(tuple)), max_size=2).map(tuple),
    classifiers=st.lists(st.tuples(AWKWARD, AWKWARD, st.sampled_from(["event", "trace", "x"])), max_size=2).map(tuple),
    attributes=st.lists(ATTRIBUTES, max_size=3).map(tuple),
)


def written(log: EventLog) -> bytes:
    target = io.BytesIO()
    write_xes(log, target)
    return target.getvalue()


def again(log_bytes: bytes, path: Path) -> EventLog:
    path.write_bytes(log_bytes)
    keep = Findings({"missing-timestamp": "keep", "case-without-name": "keep", "event-without-activity": "drop"})
    return read_xes(path, findings=keep)


def document(cases: list[Any], described: Metadata) -> bytes:
    """The cases as XES, by ElementTree."""

    def add(parent: ElementTree.Element, kind: str, key: str, value: Any) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, kind, key=key)
        if value is not None:
            element.set("value", text(kind, value))
        return element

    def text(kind: str, value: Any) -> str:
        if kind == "date":
            return str(value.isoformat())
        if kind == "float":
            return "INF" if value == math.inf else "-INF" if value == -math.inf else repr(value)
        return str(value).lower() if kind == "boolean" else str(value)

    def nest(parent: ElementTree.Element, attribute: Attribute) -> None:
        element = add(parent, attribute.type, attribute.key, attribute.value)
        target = ElementTree.SubElement(element, "values") if attribute.type == "list" else element
        for child in attribute.children:
            nest(target, child)

    root = ElementTree.Element("log", {"xes.version": described.version or ""})
    for name, (values, nested), events in cases:
        trace = ElementTree.SubElement(root, "trace")
        rows = [(trace, name, None, values, nested)]
        rows += [(ElementTree.SubElement(trace, "event"), n, t, v, e) for n, t, (v, e) in events]
        for element, label, time, attributes, inner in rows:
            add(element, "string", ACTIVITY, label)
            if time is not None:
                add(element, "date", TIMESTAMP, time)
            for key, (kind, value) in attributes.items():
                add(element, kind, key, value)
            for attribute in inner:
                if attribute.key not in (*attributes, ACTIVITY, TIMESTAMP):
                    nest(element, attribute)
    return ElementTree.tostring(root, encoding="utf-8")


@pytest.mark.nightly
@settings(max_examples=80, deadline=None, derandomize=True)
@given(cases=st.lists(CASES, min_size=1, max_size=4), described=METADATA)
def test_any_log_is_read_written_and_read_again_without_loss(
    cases: list[Any], described: Metadata, tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.xes"
    source = document(cases, described)
    log = replace(again(source, path), metadata=described)
    assert facts(log) == oracle(source)
    first = written(log)
    copy = again(first, path)
    assert facts(copy) == facts(log)
    assert copy.metadata == described
    assert written(log) == first
    assert written(copy) == first
    assert_same(again(first, path), copy)


def simple(values: dict[str, pa.Array], metadata: Metadata | None = None) -> EventLog:
    n = len(next(iter(values.values())))
    columns = {
        CASE_INDEX: pa.array([0] * n, pa.int64()),
        EVENT_INDEX: pa.array(range(n), pa.int64()),
        ACTIVITY: pa.array(["a"] * n).cast(LABEL_TYPE),
        TIMESTAMP: pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * n, TIMESTAMP_TYPE),
        **values,
    }
    return EventLog(pa.table(columns), pa.table({ACTIVITY: pa.array(["c"])}), metadata or Metadata())


def test_the_exact_bytes() -> None:
    log = simple({"n": pa.array([1, None]), "t": pa.array(['<"&\n', "b"])})
    assert written(log).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<log xes.version="1.0" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">\n'
        '\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>\n'
        '\t<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>\n'
        '\t<trace>\n\t\t<string key="concept:name" value="c"/>\n'
        '\t\t<event>\n\t\t\t<string key="concept:name" value="a"/>\n'
        '\t\t\t<date key="time:timestamp" value="2020-01-01T00:00:00.000+00:00"/>\n'
        '\t\t\t<int key="n" value="1"/>\n\t\t\t<string key="t" value="&lt;&quot;&amp;&#10;"/>\n\t\t</event>\n'
        '\t\t<event>\n\t\t\t<string key="concept:name" value="a"/>\n'
        '\t\t\t<date key="time:timestamp" value="2020-01-01T00:00:00.000+00:00"/>\n'
        '\t\t\t<string key="t" value="b"/>\n\t\t</event>\n\t</trace>\n</log>\n'
    )


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([1.0, 1e300, -0.0, 0.0, 0.1, math.inf, -math.inf, math.nan, None]),
         ["1.0", "1e+300", "-0.0", "0.0", "0.1", "INF", "-INF", "NaN"]),
        (pa.array([True, False, None]), ["true", "false"]),
        (pa.array([-(1 << 63), (1 << 63) - 1], pa.int64()), ["-9223372036854775808", "9223372036854775807"]),
        (pa.array([3], pa.uint8()), ["3"]),
        (pa.array([0, 1, 1000, None, -1, 253402300799999999], TIMESTAMP_TYPE),
         ["1970-01-01T00:00:00.000+00:00", "1970-01-01T00:00:00.000001+00:00", "1970-01-01T00:00:00.001+00:00",
          "1969-12-31T23:59:59.999999+00:00", "9999-12-31T23:59:59.999999+00:00"]),
        (pa.array([1_500_000_000], pa.timestamp("ns")), ["1970-01-01T00:00:01.500+00:00"]),
        (pa.array([1], pa.timestamp("s", tz="Europe/Amsterdam")), ["1970-01-01T00:00:01.000+00:00"]),
        (pa.array([366], pa.date32()), ["1971-01-02T00:00:00.000+00:00"]),
        (pa.array(["x", None, "y"], pa.large_string()), ["x", "y"]),
    ],
)  # fmt: skip
def test_values_of_every_arrow_type(array: pa.Array, texts: list[str]) -> None:
    root = ElementTree.fromstring(written(simple({"v": array})))
    assert [e.get("value") for e in root.iter() if e.get("key") == "v"] == texts


def test_dates_agree_with_datetime_over_the_whole_calendar() -> None:
    moments = [
        datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=d, milliseconds=d * 7919) for d in range(0, 3_652_000, 997)
    ]
    root = ElementTree.fromstring(written(simple({"v": pa.array(moments, TIMESTAMP_TYPE)})))
    texts = [str(e.get("value")) for e in root.iter() if e.get("key") == "v"]
    assert [datetime.fromisoformat(t) for t in texts] == moments


@pytest.mark.parametrize("text", ["\x00", "a\x1fb", "\uffff", "\ufffe"])
def test_what_xml_cannot_carry_is_refused_by_name(text: str) -> None:
    with refused(OutputError, "xes-character-not-allowed"):
        written(simple({"v": pa.array(["fine", text])}))
    with refused(OutputError, "xes-character-not-allowed"):
        written(simple({"v": pa.array([1])}, Metadata(attributes=(Attribute("k", text, "string"),))))


def test_columns_that_xes_has_no_type_for_are_refused() -> None:
    with refused(OutputError, "xes-column-type-not-writable"):
        written(simple({"v": pa.array([{"a": 1}])}))


def test_times_outside_the_calendar_are_refused() -> None:
    with refused(OutputError, "xes-time-outside-years"):
        written(simple({"v": pa.array([253402300800000000], TIMESTAMP_TYPE)}))


def test_children_of_a_value_are_written_into_it(tmp_path: Path) -> None:
    nested = json.dumps([{"key": "v", "type": "string", "children": [{"key": "w", "type": "int", "value": 1}]}])
    log = simple({"v": pa.array(["x", "y"]), "xes:nested": pa.array([nested, None])})
    text = written(log).decode()
    assert '\t\t\t<string key="v" value="x">\n\t\t\t\t<int key="w" value="1"/>\n\t\t\t</string>\n' in text
    assert facts(again(text.encode(), tmp_path / "log.xes")) == facts(log)


@pytest.mark.parametrize(
    "held",
    [
        "junk",
        "[1]",
        '[{"key": "a"}]',
        '[{"key": 1, "type": "string"}]',
        '[{"key": "a", "type": "string", "value": []}]',
        '[{"key": "a", "type": "string/><event", "value": "1"}]',
        '[{"key": "a", "type": "string", "children": 5}]',
        "[" * 5000,
    ],
    ids=range(8),
)
def test_a_column_that_is_called_as_nested_attributes_and_holds_none_is_refused(tmp_path: Path, held: str) -> None:
    """It ended the command with a traceback, or was written as elements of its own."""
    (tmp_path / "log.csv").write_text("case,activity,timestamp\n1,a,2024-01-01T00:00:00Z\n")
    log = files.read(tmp_path / "log.csv")
    log = replace(log, events=log.events.append_column("xes:nested", pa.array([held])))
    with refused(OutputError, "xes-nested-column-invalid", nested="xes:nested"):
        write_xes(log, io.BytesIO())


def test_an_attribute_of_a_type_that_xes_has_not_is_not_written() -> None:
    """A changed Parquet file may hold an unknown type of attribute, which is refused."""
    frame = pa.table({"case": ["1"], "activity": ["a"], "timestamp": [datetime(2024, 1, 1, tzinfo=UTC)]})
    log = replace(files.read(frame), metadata=Metadata(attributes=(Attribute("k", "v", "string/><trace"),)))
    with refused(OutputError, "xes-type-unknown"):
        write_xes(log, io.BytesIO())
