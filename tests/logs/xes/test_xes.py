"""XES is read exactly, whatever legal form it takes."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from xes_oracle import assert_same, assert_same_tables, facts, oracle, read_plain
from xes_tools import EVENT, Reader, event, found, trace, values

from veilog.logs.eventlog import NESTED, EventLog
from veilog.logs.findings import Findings
from veilog.logs.metadata import Attribute
from veilog.logs.xes.reader import read_xes
from veilog.logs.xes.writer import write_xes

# ---- real logs

COUNTS = {
    "sepsis": (1050, 16, 15214, 846),
    "bpic2013_incidents": (7554, 4, 65533, 1511),
    "receipt": (1434, 27, 8577, 116),
    "traffic_fines": (150370, 11, 561470, 231),
    "unrineweginfectie": (1650, 10, 6973, 50),
    "ccc19": (20, 29, 1394, 20),
}

needs_logs = pytest.mark.skipif("VEILOG_LOGS" not in os.environ, reason="VEILOG_LOGS names no folder of logs")


@pytest.mark.nightly(but=1)
@needs_logs
@pytest.mark.parametrize("name", COUNTS)
def test_public_logs_have_their_published_counts(name: str) -> None:
    log = read_xes(Path(os.environ["VEILOG_LOGS"]) / f"{name}.xes.gz", findings=Findings())
    counts = log.statistics
    assert (counts.cases, counts.activities, counts.events, counts.variants) == COUNTS[name]


@pytest.mark.nightly
@needs_logs
@pytest.mark.parametrize("name", [name for name in COUNTS if name != "traffic_fines"])
def test_public_logs_survive_writing_and_the_plain_reader_agrees(name: str, tmp_path: Path) -> None:
    source = Path(os.environ["VEILOG_LOGS"]) / f"{name}.xes.gz"
    log = read_xes(source, findings=Findings())
    assert_same(read_plain(source, Findings()), log)
    written = written_log(log)
    (tmp_path / "again.xes").write_bytes(written)
    again = read_xes(tmp_path / "again.xes", findings=Findings())
    assert_same_tables(again, log)
    if log.metadata.version is not None:
        assert again.metadata == log.metadata
    assert written_log(again) == written


def written_log(log: EventLog) -> bytes:
    target = io.BytesIO()
    write_xes(log, target)
    return target.getvalue()


@pytest.mark.nightly
@needs_logs
@pytest.mark.parametrize("name", ["sepsis", "receipt"])
def test_public_logs_are_read_as_elementtree_reads_them(name: str, tmp_path: Path) -> None:
    import gzip

    source = Path(os.environ["VEILOG_LOGS"]) / f"{name}.xes.gz"
    assert facts(read_xes(source, findings=Findings())) == oracle(gzip.decompress(source.read_bytes()))


# ---- legal forms


@pytest.mark.parametrize(
    "form",
    [
        '<string key="k" value="a &lt;&amp;&quot;&apos;&gt; &#x41;&#10;b"/>',
        '<string value="a &lt;&amp;&quot;&apos;&gt; &#65;&#xa;b" key="k"/>',
        "<string key='k' value='a &lt;&amp;\"&apos;> A&#10;b'/>",
        '<string\n\tkey = "k"\r\n value = "a &lt;&amp;&#34;\'> &#65;&#10;b"\n/>',
        '<string key="k" value="a &lt;&amp;&#34;\'> A&#10;b"></string>',
        '<string key="k" value="a &lt;&amp;&#34;\'> A&#10;b"><!-- nothing --></string>',
        '<!-- <string key="k" value="no"/> --><string key="k" value="a &lt;&amp;&#34;\'> A&#10;b"/>',
        '<?pi <string key="k" value="no"/> ?><string key="&#107;" value="a &lt;&amp;&#34;\'> A&#10;b"/>',
    ],
)
def test_an_attribute_is_the_same_in_every_legal_form(read: Reader, form: str) -> None:
    assert values(read(trace(event(form))), "k") == ["a <&\"'> A\nb"]


def test_white_space_in_values_is_normalised_as_xml_says(read: Reader) -> None:
    log = read(
        b'<log><trace><string key="concept:name" value="a\r\nb\tc\rd&#13;&#10;&#9;e"/>'
        + EVENT.encode()
        + b"</trace></log>"
    )
    assert log.cases.column("concept:name").to_pylist() == ["a b c d\r\n\te"]


@pytest.mark.parametrize(
    ("encoding", "declared", "bom"),
    [
        ("utf-8", "utf8", b""),
        ("utf-8", "UTF8", b"\xef\xbb\xbf"),
        ("utf-8", "utf_8", b""),
        ("utf-8", None, b""), ("utf-8", "UTF-8", b"\xef\xbb\xbf"), ("utf-16", "UTF-16", b""), ("utf-16", None, b""),
        ("iso-8859-1", "ISO-8859-1", b""), ("cp1252", "windows-1252", b""), ("utf-16-le", "UTF-16", b"\xff\xfe"),
    ],
)  # fmt: skip
def test_encodings(read: Reader, encoding: str, declared: str | None, bom: bytes) -> None:
    head = "" if declared is None else f'<?xml version="1.0" encoding="{declared}"?>'
    document = head + f"<log>{trace(event(name='Prüfung é'), name='größer')}</log>"
    log = read(bom + document.encode(encoding))
    assert values(log, "concept:name") == ["Prüfung é"]
    assert log.cases.column("concept:name").to_pylist() == ["größer"]


def test_prefixes_cdata_and_document_types_are_no_obstacle(read: Reader) -> None:
    prefixed = (
        b'<?xml version="1.0"?><x:log xmlns:x="http://www.xes-standard.org/" xmlns:o="urn:other">'
        b'<x:trace><x:string key="concept:name" value="c"/><o:event/><x:event><x:string key="concept:name" value="a"/>'
        b'<o:string key="k" value="v"/></x:event></x:trace></x:log>'
    )
    log = read(prefixed)
    assert facts(log) == [({("concept:name", "string"): "c"}, [], [({("concept:name", "string"): "a"}, [])])]
    assert found(log)["unknown-element"] == (2, 1)
    log = read("<![CDATA[<event><trace/>]]>" + trace(EVENT))
    assert (log.cases.num_rows, len(log), found(log)) == (1, 1, {"stray-text": (1, 1)})
    log = read(
        b'<!DOCTYPE log [<!ELEMENT log ANY><!ATTLIST trace x CDATA "y">]><log>' + trace(EVENT).encode() + b"</log>"
    )
    assert len(log) == 1


def test_names_that_other_readers_take_for_nothing(read: Reader) -> None:
    names = ["NA", "", "null", "None", "nan", " a ", "1"]
    log = read("".join(trace(event(name=name), name=name) for name in names))
    assert log.cases.column("concept:name").to_pylist() == names
    assert values(log, "concept:name") == names


def test_empty_traces_and_equal_names_stay_cases(read: Reader) -> None:
    log = read("<trace/>\n" + trace() + "\n" + trace(EVENT) + trace(EVENT, EVENT))
    assert log.cases.column("concept:name").to_pylist() == [None, "c", "c", "c"]
    assert log.offsets.tolist() == [0, 0, 0, 1, 3]
    assert found(log) == {"case-without-name": (1, 1), "duplicate-case-id": (2, 3), "empty-trace": (2, 1)}


def test_a_case_without_a_name_is_never_called_as_another(read: Reader) -> None:
    named = [trace(EVENT, name="#2"), "<trace/>", trace(EVENT, name="##3"), trace(EVENT, name="c")]
    log = read("".join(named))
    assert log.cases.column("concept:name").to_pylist() == ["#2", None, "##3", "c"]
    assert log.case_labels.to_pylist() == ["#2", "###2", "##3", "c"]
    assert "duplicate-case-id" not in found(log)


def test_attributes_of_a_trace_may_follow_its_events(read: Reader) -> None:
    log = read(f'<trace>{EVENT}<int key="age" value="3"/><string key="concept:name" value="late"/></trace>')
    assert log.cases.to_pylist() == [{"concept:name": "late", "age": 3}]


def test_types_become_columns_and_mixed_types_columns_of_their_own(read: Reader) -> None:
    first = '<int key="v" value="1"/><id key="i" value="x"/><boolean key="b" value="true"/><float key="f" value="1e3"/>'
    second = '<string key="v" value="one"/><date key="d" value="2020-01-01T00:00:00+01:00"/>'
    third = '<int key="v" value="many"/><string key="v (string)" value="clash"/><string key="case:index" value="9"/>'
    log = read(trace(event(first), event(second), event(third)))
    schema = log.events.schema
    assert schema.field("v").type == pa.int64()
    assert schema.field("b").type == pa.bool_()
    assert schema.field("f").type == pa.float64()
    assert schema.field("d").type == pa.timestamp("us", tz="UTC")
    assert schema.field("i").metadata == {b"xes:type": b"id"}
    assert values(log, "v") == [1, None, None]
    assert values(log, "v (string)") == [None, None, "clash"]
    assert values(log, "v (string 2)") == [None, "one", None]
    assert schema.field("v (string 2)").metadata == {b"xes:key": b"v", b"xes:type": b"string"}
    assert values(log, "v (int as text)") == [None, None, "many"]
    assert values(log, "case:index") == [0, 0, 0]
    assert values(log, "case:index (string)") == [None, None, "9"]
    assert found(log) == {"bad-value": (1, 1)}


def test_names_that_are_numbers_are_names(read: Reader) -> None:
    log = read('<trace><int key="concept:name" value="17"/><event><int key="concept:name" value="5"/></event></trace>')
    assert log.cases.column("concept:name").to_pylist() == ["17"]
    assert values(log, "concept:name") == ["5"]
    assert values(log, "concept:name (int)") == [5]


def test_nested_attributes_lists_and_containers_are_kept_as_json(read: Reader) -> None:
    inner = (
        '<string key="a" value="v"><int key="b" value="1"><date key="d" value="2020-01-01T00:00:00Z"/></int></string>'
        '<list key="l"><values><string key="x" value="1"/><float key="y" value="0.5"/></values></list>'
        '<container key="c"><boolean key="z" value="false"/></container><list key="e"/>'
    )
    log = read(trace(event(inner), EVENT))
    assert values(log, "a") == ["v", None]
    assert values(log, NESTED) == [
        '[{"key":"a","type":"string","children":[{"key":"b","type":"int","value":1,"children":'
        '[{"key":"d","type":"date","value":"2020-01-01T00:00:00.000+00:00"}]}]},'
        '{"key":"l","type":"list","children":[{"key":"x","type":"string","value":"1"},'
        '{"key":"y","type":"float","value":0.5}]},'
        '{"key":"c","type":"container","children":[{"key":"z","type":"boolean","value":false}]},'
        '{"key":"e","type":"list"}]',
        None,
    ]


def test_what_the_log_says_about_itself(read: Reader) -> None:
    document = (
        '<log xes.version="1849.2016" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">'
        '<extension name="Concept" prefix="concept" uri="http://x/c.xesext"/>'
        '<global scope="trace"><string key="concept:name" value="n"/></global>'
        '<classifier name="A" keys="concept:name lifecycle:transition"/><classifier name="B" scope="trace" keys="k"/>'
        '<string key="s" value="v"><int key="i" value="2"/></string><date key="d" value="2020-01-01T01:00:00+01:00"/>'
        f'<list key="l"><values><id key="x" value="1"/></values></list>{trace(EVENT)}'
        '<float key="late" value="2"/></log>'
    )
    metadata = read(document.encode()).metadata
    assert (metadata.version, metadata.features) == ("1849.2016", "nested-attributes")
    assert metadata.extensions == (("Concept", "concept", "http://x/c.xesext"),)
    assert metadata.globals == (("trace", (Attribute("concept:name", "n", "string"),)),)
    assert metadata.classifiers == (("A", "concept:name lifecycle:transition", "event"), ("B", "k", "trace"))
    assert metadata.attributes == (
        Attribute("s", "v", "string", (Attribute("i", 2, "int"),)),
        Attribute("d", datetime(2020, 1, 1, tzinfo=UTC), "date"),
        Attribute("l", None, "list", (Attribute("x", "1", "id"),)),
        Attribute("late", 2.0, "float"),
    )


# ---- times


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2017-08-08T15:20:59.000+00:00", "2017-08-08T15:20:59"),
        ("2017-08-08T15:20:59Z", "2017-08-08T15:20:59"),
        ("2017-08-08T15:20:59+01:00", "2017-08-08T14:20:59"),
        ("2017-08-08T15:20:59-0530", "2017-08-08T20:50:59"),
        ("2017-08-08T15:20:59+02", "2017-08-08T13:20:59"),
        ("2017-08-08 15:20:59", "2017-08-08T15:20:59"),
        ("2017-08-08T15:20:59.1", "2017-08-08T15:20:59.100000"),
        ("2017-08-08T15:20:59.123456789Z", "2017-08-08T15:20:59.123456"),
        ("2020-02-29T00:00:00.000001-12:00", "2020-02-29T12:00:00.000001"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999000"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999"),
        ("2019-12-31T24:00:00Z", "2020-01-01T00:00:00"),
        ("  2017-08-08T15:20:59Z ", "2017-08-08T15:20:59"),
        ("2017-08-08T15&#58;20:59Z", "2017-08-08T15:20:59"),
        ("2017-02-29T00:00:00Z", None),
        ("1900-02-29T00:00:00Z", None),
        ("2017-13-01T00:00:00Z", None),
        ("2017-00-10T00:00:00Z", None),
        ("2017-04-31T00:00:00Z", None),
        ("2017-04-00T00:00:00Z", None),
        ("2017-04-30T25:00:00Z", None),
        ("2017-04-30T24:00:01Z", None),
        ("2017-04-30T10:60:00Z", None),
        ("2017-04-30T10:00:60Z", None),
        ("2017-04-30T10:00:00+24:00", None),
        ("2017-04-30T10:00:00+01:60", None),
        ("2017-04-30T10:00:00.1234567890Z", None),
        ("2017-04-30T10:00:00.Z", None),
        ("2017-04-30", None),
        ("30.04.2017 10:00", None),
        ("0000-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+01:00", None),
        ("10000-01-01T00:00:00Z", None),
        ("٢٠١٧-04-30T10:00:00Z", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("others", [0, 3])
def test_a_time_is_read_exactly_or_called_bad(read: Reader, text: str, utc: str | None, others: int) -> None:
    """Alone and among others of its length, which the bulk parser takes together."""
    neighbours = [event(time="2017-08-08T15:20:59.123Z"), event(time="2017-08-08T15:20:59Z")] * others
    log = read(trace(event(time=text), *neighbours, event(time=text)), bad_timestamp="keep")
    expected = None if utc is None else f"{utc}+00:00"
    assert [values(log, "time:timestamp")[i] for i in (0, -1)] == [expected] * 2
    assert found(log).get("bad-timestamp", (0, None))[0] == (2 if utc is None else 0)


def test_what_is_odd_about_times_is_counted_where_it_is(read: Reader) -> None:
    times = ["2020-01-02T00:00:00Z", "2020-01-01T00:00:00+01:00", "2020-01-03T00:00:00", "2020-01-04T00:00:00.0000001Z"]
    log = read("\n".join(("", trace(*("\n" + event(time=t) for t in times)), trace(event(time=times[1]), name="d"))))
    assert found(log) == {
        "mixed-time-zones": (3, 4),
        "timestamp-without-zone": (1, 5),
        "precision-lost": (1, 6),
        "unordered-timestamps": (1, 4),
    }
    assert values(log, "time:timestamp")[1] == "2019-12-31T23:00:00+00:00"
