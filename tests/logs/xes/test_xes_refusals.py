"""Faults of XES files are named with line and count, and other files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from xes_oracle import facts, oracle
from xes_tools import EVENT, Reader, event, found, refusal, trace, values

from veilog.logs.findings import Findings
from veilog.logs.xes.reader import read_xes


def test_missing_names_activities_and_times_stop_the_reader_at_their_line(read: Reader) -> None:
    assert refusal(read, "\n" + trace(EVENT, name=None), case_without_name="fail").line == 2
    assert refusal(read, trace("\n\n" + event(name=None)), event_without_activity="fail").line == 3
    assert refusal(read, trace(EVENT, "\n" + event(time=None))).line == 2
    assert refusal(read, trace(EVENT, "\n" + event(time="soon"))).line == 2


def test_policies_drop_what_they_say_and_nothing_else(read: Reader) -> None:
    document = trace(event(name=None), event(name="b", time=None), event(name="c", time="soon"), EVENT) + trace(
        event(name="d"), name=None
    )
    log = read(document, event_without_activity="drop", missing_timestamp="drop", bad_timestamp="drop",
               case_without_name="drop")  # fmt: skip
    assert facts(log) == oracle(f"<log>{trace(EVENT)}</log>".encode())
    assert log.events.column("concept:name").combine_chunks().dictionary.to_pylist() == ["a"]
    assert {rule: count for rule, (count, _) in found(log).items()} == {
        "event-without-activity": 1, "missing-timestamp": 1, "bad-timestamp": 1, "case-without-name": 1,
    }  # fmt: skip
    log = read(document, missing_timestamp="keep", bad_timestamp="keep")
    assert values(log, "concept:name") == ["b", "c", "a", "d"]
    log = read(trace(EVENT) + trace() + trace(event(name="b")), duplicate_case_id="drop", empty_trace="drop")
    assert (values(log, "concept:name"), log.cases.num_rows) == (["a"], 1)


def test_all_findings_can_be_collected_without_stopping(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_text(f"<log>{trace(event(name=None), event(time='x'), event(time=None), EVENT, name=None)}</log>")
    log = read_xes(path, findings=Findings(collect_all=True))
    assert set(found(log)) >= {"event-without-activity", "bad-timestamp", "missing-timestamp", "case-without-name"}


def test_a_log_without_any_time_is_only_remarked_upon(read: Reader) -> None:
    log = read(trace(event(time=None), event(time=None)))
    assert found(log) == {"no-timestamps": (1, None)}
    assert values(log, "time:timestamp") == [None, None]


def test_duplicate_and_foreign_things_are_counted(read: Reader) -> None:
    inner = (
        '<string key="k" value="1"/>\n<int key="k" value="2"/>\n<foo a="b"><event/></foo>\n'
        '<string key="n"/>\n<string value="v"/>'
    )
    log = read(trace(f'\n<event x="y">{EVENT[7:-8]}{inner} text </event>', "\n<string/>"))
    assert found(log) == {
        "duplicate-attribute": (1, 3), "unknown-element": (1, 4), "incomplete-attribute": (3, 5),
        "unknown-attribute": (1, 2), "stray-text": (1, 6),
    }  # fmt: skip
    assert values(log, "k") == ["1"]


def test_values_that_do_not_fit_can_be_dropped(read: Reader) -> None:
    log = read(trace(event('<int key="n" value="x"/><int key="m" value="9223372036854775808"/>')), bad_value="drop")
    assert not {"n", "m", "n (int as text)"} & set(log.events.column_names)
    assert found(log)["bad-value"] == (2, 1)


# ---- refusals


@pytest.mark.parametrize(
    ("document", "words", "line"),
    [
        (b"", "empty", None),
        (b"   ", "truncated", 1),
        (b"case,activity\n1,a\n", "not well-formed", 1),
        (b"PK\x03\x04rubbish", "not well-formed", 1),
        (b"<log><trace>", "truncated", 1),
        (b"<log>\n<trace></log>", "mismatched tag", 2),
        (b"<html><trace/></html>", "<html>, not <log>", 1),
        (b"<log><trace/></log><log/>", "junk", 1),
        (b'<?xml version="1.0" encoding="UTF-8"?>\n<log>\xe9</log>', "not well-formed", 2),
        (b'<?xml version="1.0" encoding="US-ASCII"?><log>\xc3\xa9</log>', "not well-formed", 1),
        (b'<?xml version="1.0" encoding="martian"?><log/>', "not supported", 1),
        (b'<?xml version="1.0" encoding="shift_jis"?><log/>', "not supported", 1),
        (b'<!DOCTYPE log [<!ENTITY a "aaaa">]>\n<log>&a;</log>', "declares an entity", 1),
        (b'<!DOCTYPE log [<!ENTITY % a "aaaa"> %a;]><log/>', "declares an entity", 1),
        (b'<!DOCTYPE log [<!ENTITY x SYSTEM "file:///etc/passwd">]><log>&x;</log>', "declares an entity", 1),
        (b'<!DOCTYPE log SYSTEM "http://127.0.0.1:1/xes.dtd">\n<log/>', "outside|external", 1),
        (b"<log>&undefined;</log>", "undefined entity", 1),
        (b"<log>" + b'<list key="a">' * 200 + b"</list>" * 200 + b"</log>", "nested deeper", 1),
        (b"<x:log><trace/></x:log>", "prefix", 1),
    ],
)
def test_what_is_no_log_is_refused_in_words(read: Reader, document: bytes, words: str, line: int | None) -> None:
    refused = refusal(read, document)
    assert any(word in refused.problem for word in words.split("|")), refused.problem
    assert refused.line == line


def test_an_entity_bomb_costs_nothing(read: Reader) -> None:
    declarations = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(30))
    bomb = f'<!DOCTYPE log [<!ENTITY l0 "ha">{declarations}]><log>&l30;</log>'.encode()
    assert "entity" in refusal(read, bomb).problem
