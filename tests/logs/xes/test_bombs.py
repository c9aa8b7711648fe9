"""A huge value in a small file is refused at once, in bounded time and memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from veilog.errors import InputError
from veilog.logs import files
from veilog.logs.input.source import MAX_VALUE

HUGE = 6 * MAX_VALUE
XES = b"<log>\n<trace><string key='concept:name' value='"
UTF16 = '\ufeff<?xml version="1.0" encoding="UTF-16"?><log><trace><string key="a" value="'.encode("utf-16-le")
CSV = b"case,activity,time\n1,"

BOMBS = {
    "a value": ("bomb.xes.gz", XES, b"x", r":2:8: A tag .* longer than 16 MB"),
    "a value of characters that hold a tag's byte": ("bomb.xes.gz", UTF16, "\u3c00".encode("utf-16-le"), "longer than"),
    "a comment": ("bomb.xes.gz", b"<log>\n<!-- ", b"<a b ", r":2:1: .* longer than 16 MB"),
    "text": ("bomb.xes.gz", b"<log>\n<trace>", b"x", r":2: .* longer than 16 MB"),
    "character data": ("bomb.xes.gz", b"<log>\n<trace><![CDATA[", b"x", r":2: .* longer than 16 MB"),
    "what comes before the log": ("bomb.xes.gz", b"<", b"x", "longer than 16 MB"),
    "a field": ("bomb.csv.gz", CSV, b"x", "row is longer than 4 MB"),
    "a field in quotes": ("bomb.csv.gz", CSV + b'"', b'a\n""b', "row is longer than 4 MB"),
    "a field of letters that are no UTF-8": ("bomb.csv.gz", CSV, b"\xfc", r":2: A value is longer than 16 MB"),
}


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("what", BOMBS)
def test_a_huge_value_is_refused_with_its_place(tmp_path: Path, what: str) -> None:
    name, head, unit, words = BOMBS[what]
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as out:
        out.write(head)
        block = unit * ((1 << 20) // len(unit))
        for _ in range(HUGE >> 20):
            out.write(block)
    with pytest.raises(InputError, match=words):
        files.read(tmp_path / name)


@pytest.mark.slow
def test_what_is_just_long_is_read(tmp_path: Path) -> None:
    value = "x" * (MAX_VALUE - 1000)
    named = "<trace><string key='concept:name' value='1'/>"
    text = f"<log>{named}<event><string key='concept:name' value='{value}'/></event></trace></log>"
    (tmp_path / "log.xes").write_text(text)
    assert files.read(tmp_path / "log.xes").variants.to_dict() == {(value,): 1}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the most memory of one program")
def test_memory_stays_bounded_however_much_is_unpacked(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.xes.gz", "wb", compresslevel=1) as out:
        out.write(XES)
        for _ in range(900):
            out.write(b"x" * (1 << 20))
    program = (
        "import re, veilog, sys\n"
        "try: veilog.read(sys.argv[1])\n"
        "except veilog.errors.InputError: print(re.search('VmHWM:\\\\s+(\\\\d+)', open('/proc/self/status').read())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "bomb.xes.gz")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >> 10 < 500, "megabytes, of 900 that would come out"
