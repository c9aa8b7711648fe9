"""Several processes read XES as one does, or leave it to one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from refusals import refused
from xes_oracle import LENIENT, assert_same
from xes_tools import EVENT, event, trace

import veilog.logs.xes.scanner as xes_parts
from veilog.errors import InputError
from veilog.logs.findings import Findings
from veilog.logs.input.source import ReadOptions
from veilog.logs.xes.reader import read_xes


def big_log(cases: int) -> bytes:
    lines = ['<?xml version="1.0"?>', "<!-- <trace> -->", "<log>", '<string key="s" value="v"/>']
    for i in range(cases):
        events = [event(f'<int key="n" value="{i}"/>', f"2020-01-01T00:00:{j:02}+0{j}:00") for j in range(i % 4)]
        lines.append(trace(*("\n" + e for e in events), name=f"c{i}"))
    return "\n".join([*lines, '<int key="after" value="1"/></log>']).encode()


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, processes: int
) -> None:
    import gzip

    path = tmp_path / "log.xes"
    path.write_bytes(gzip.compress(big_log(300)) if packed else big_log(300))
    alone = read_xes(path, findings=Findings())
    monkeypatch.setattr(xes_parts, "SMALLEST", 1000)
    used: list[int] = []
    gather = xes_parts._gather
    monkeypatch.setattr(xes_parts, "_gather", lambda r, b, p: used.append(len(b)) or gather(r, b, p))
    assert_same(read_xes(path, findings=Findings(), declared=ReadOptions(processes=processes)), alone)
    assert used == ([] if packed else [processes - 1])


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    "trouble", [b"<!-- <trace> -->", b"<![CDATA[<trace>]]>", b"<x><trace/></x>", b"<trace>", b"&x;"]
)
def test_a_file_that_cannot_be_split_is_read_or_refused_as_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: bytes
) -> None:
    """A file with trouble around the middle is read or refused as by one process."""
    monkeypatch.setattr(xes_parts, "SMALLEST", 100)
    document = big_log(12)
    path = tmp_path / "log.xes"
    starts = [i for i in range(len(document)) if document.startswith(b"\n<trace", i)]
    for at in starts[5:7]:
        path.write_bytes(document[:at] + trouble * 3 + document[at:])
        results = []
        for processes in (1, 2):
            try:
                results.append(read_xes(path, findings=Findings(LENIENT), declared=ReadOptions(processes=processes)))
            except InputError as error:
                results.append(error)
        if isinstance(results[0], InputError):
            assert str(results[0]) == str(results[1])
        else:
            assert_same(*results)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_pipe_is_read_once_or_refused(tmp_path: Path, encoding: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = f"<log>{trace(EVENT)}</log>".encode(encoding)
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    if encoding == "utf-8":
        assert len(read_xes(pipe, findings=Findings(), declared=ReadOptions(processes=2))) == 1
    else:
        with refused(InputError, "xes-not-from-pipe"):
            read_xes(pipe, findings=Findings(), declared=ReadOptions(processes=2))
    writer.join()


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes(big_log(300))
    monkeypatch.setattr(xes_parts, "BLOCK", 5000)
    seen: list[float] = []
    read_xes(path, findings=Findings(), progress=seen.append)
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] == 1
