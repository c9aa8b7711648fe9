"""Broken files are refused in words, or read as ElementTree reads them."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from xes_oracle import LENIENT, assert_same, facts, oracle, read_plain

import veilog.logs.xes.scanner as xes_parts
from veilog.errors import InputError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings
from veilog.logs.xes.reader import read_xes

SEED = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment with <event> and "quotes" -->
<log xes.version="1.0" xes.features="nested-attributes" xmlns="http://www.xes-standard.org/">
\t<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
\t<global scope="event"><string key="concept:name" value="x"/></global>
\t<classifier name="Activity" keys="concept:name"/>
\t<string key="source" value="a &amp; b"/>
\t<trace>
\t\t<string key="concept:name" value="NA"/>
\t\t<int key="age" value="42"/>
\t\t<event>
\t\t\t<string key="concept:name" value="a &lt;b&gt; &#233;"/>
\t\t\t<date key="time:timestamp" value="2020-02-29T23:59:59.123+01:00"/>
\t\t\t<float key="cost" value="1.50"/>
\t\t\t<boolean key="urgent" value="true"/>
\t\t</event>
\t\t<event>
\t\t\t<string key='concept:name' value='b"c'/>
\t\t\t<date value="2020-03-01 10:00:00Z" key="time:timestamp"/>
\t\t\t<id key="uuid" value="f81d4fae-7dec"/>
\t\t\t<string key="cost" value="free"><int key="why" value="7"/></string>
\t\t\t<list key="tags"><values><string key="t" value="1"/><string key="t" value="2"/></values></list>
\t\t</event>
\t</trace>
\t<trace>
\t\t<string key="concept:name" value="\u00fcber"></string>
\t</trace>
\t<?pi <trace> ?>
\t<trace><string key="concept:name" value="3"/><event><string key="concept:name" value="a"/>\
<date key="time:timestamp" value="2021-01-01T00:00:00.000000001-0530"/></event></trace>
</log>
""".encode()

INSERTS = [
    b"&", b"&amp;", b"&#0;", b"&#x41;", b"&nope;", b"<", b">", b"/>", b'"', b"'", b"<!--", b"-->", b"<![CDATA[", b"]]>",
    b"<?x ?>", b"<?", b"<event>", b"</event>", b"<trace>", b"</trace>", b"<event/>", b"<trace/>", b"<log>", b"</log>",
    b'<string key="k" value="v"/>', b'<string key="concept:name" value="w"/>', b'<int key="concept:name" value="5"/>',
    b'<int key="n" value="1e3"/>', b'<float key="f" value="-INF"/>', b'<boolean key="b" value="maybe"/>',
    b'<date key="time:timestamp" value="2020-02-30T00:00:00Z"/>', b'<date key="d" value="2020-02-28T24:00:00"/>',
    b'<list key="l"/>', b'<container key="c"><string key="k" value="v"/></container>', b"<values>", b"</values>",
    b"<foo><string key='a' value='b'/></foo>", b"<foo/>", b'<x:string xmlns:x="u" key="k" value="v"/>', b"text",
    b'<string key="k"/>', b'<string value="v"/>', b"\x00", b"\xff", b"\xc3", b"\r\n", b"\r", b"\n", b"\t",
    b"\xef\xbb\xbf", b'<!DOCTYPE log [<!ENTITY a "b">]>', b"<!DOCTYPE log>",
    b'<string key="a&#10;b" value="c\nd"></string>', b"=", b" ",
]  # fmt: skip


def mutant(rng: random.Random) -> bytes:
    """The seed with one to three accidents."""
    data = SEED
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 5, 20, 100))
        tags = [i for i in range(len(data)) if data[i : i + 1] == b"<"]
        kind = rng.randrange(9)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        elif kind == 3 and rng.random() < 0.3:
            data = data[:at]
        elif kind in (4, 5) and tags:
            at = rng.choice(tags)
            data = data[:at] + rng.choice(INSERTS) + data[at:]
        elif kind == 6:
            data = data[:at] + rng.choice(INSERTS) + data[at:]
        elif kind == 7 and len(tags) > 2:  # swap two neighbouring tags
            i = rng.randrange(len(tags) - 2)
            a, b, c = tags[i], tags[i + 1], tags[i + 2]
            data = data[:a] + data[b:c] + data[a:b] + data[c:]
        elif tags:  # take a tag away, or give it another name
            at = rng.choice(tags)
            end = data.find(b">", at) + 1 or len(data)
            name = rng.choice((b"", b"<int", b"<string", b"<event", b"<date", b"<list"))
            data = (
                data[:at] + (name + data[at:end].lstrip(b"<abcdefghijklmnopqrstuvwxyz") if name else b"") + data[end:]
            )
    return data


def outcome(path: Path) -> EventLog | InputError:
    try:
        return read_xes(path, findings=Findings(LENIENT))
    except InputError as error:
        assert error.path == str(path)
        return error


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("seed", range(8))
def test_every_mutant_is_refused_or_read_exactly(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    path = tmp_path / "mutant.xes"
    read = 0
    for number in range(100):
        data = mutant(rng)
        path.write_bytes(data)
        monkeypatch.setattr(xes_parts, "BLOCK", rng.choice((64, 300, 1 << 20)))
        result = outcome(path)
        try:
            expected = oracle(data)
        except (ET.ParseError, ValueError, LookupError):
            assert isinstance(result, InputError), (number, data)
            continue
        if b"<!ENTITY" in data and isinstance(result, InputError):
            continue
        if not expected:
            assert isinstance(result, InputError), (number, data)
            continue
        assert isinstance(result, EventLog), (number, result, data)
        assert facts(result) == expected, (number, data)
        plain = read_plain(path, Findings(LENIENT))
        assert facts(plain) == expected, (number, data)
        counts = {(f.rule, f.line) for f in result.findings if f.rule != "stray-text"}
        assert counts == {(f.rule, f.line) for f in plain.findings if f.rule != "stray-text"}, (number, data)
        read += 1
    assert 10 <= read <= 90, "mutants that are all broken, or all whole, test little"


@pytest.mark.nightly
def test_truncations_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.xes"
    whole = len(SEED.rstrip())
    for size in (*range(0, whole - 50, 3), *range(whole - 50, whole)):
        path.write_bytes(SEED[:size])
        assert isinstance(outcome(path), InputError), size
    path.write_bytes(SEED[:whole])
    assert facts(read_xes(path, findings=Findings(LENIENT))) == oracle(SEED)


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 3, 7, 31, 64, 257, 1000])
def test_block_borders_change_nothing(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "seed.xes"
    path.write_bytes(SEED)
    whole = read_xes(path, findings=Findings())
    monkeypatch.setattr(xes_parts, "BLOCK", block)
    assert_same(read_xes(path, findings=Findings()), whole)
    assert_same(read_plain(path, Findings()), whole)
