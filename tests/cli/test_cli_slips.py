"""Slips of the hand: options of other programs, bad numbers, and missing files."""

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from refusals import sentence

from veilog import _files
from veilog.cli import application, main
from veilog.cli.shared.requests import declared_list


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "release log.xes -o out.xes -m laplace --epsilon 1",
            "TARGET is a word without one: veilog release LOG TARGET.",
        ),
        (
            "release log.xes out.xes --output=more.xes -m laplace",
            "TARGET is a word without one: veilog release LOG TARGET.",
        ),
        ("sample a.model --output out.csv", "TARGET is a word without one: veilog sample MODEL TARGET."),
        ("ledger export log.xes -o out.csv", "TARGET is a word without one: veilog ledger export LOG TARGET."),
        ("info --input log.xes", "LOG is a word without one: veilog info LOG."),
        ("info log.xes -o out.json", "--json FILE writes the result to a file."),
    ],
)
def test_the_options_of_other_programs_for_files_are_answered_with_where_they_are_named(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err


def whole_numbers(app: App, *before: str) -> Iterator[list[str]]:
    """Yield every command with its required arguments and each whole-number option."""
    for name in app:
        if name.startswith("-"):
            continue
        yield from whole_numbers(app[name], *before, name)
        if app[name].default_command is not None:
            arguments = app[name].assemble_argument_collection()
            needed = [
                ["x"] if found.index is not None else [found.names[0], "x"] for found in arguments if found.required
            ]
            for found in arguments:
                if found.hint in (int, int | None) and found.index is None:
                    yield [*before, name, *itertools.chain(*needed), found.names[0]]


@pytest.mark.nightly
def test_a_number_that_is_not_whole_is_refused_by_every_option_that_takes_whole_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every option for whole numbers refuses 1.5, and does not round it."""
    calls = list(whole_numbers(application(whole=True)))
    assert ["ledger", "set", "x", "--releases"] in calls and len(calls) > 80
    for call in calls:
        assert main([*call, "1.5"]) == 2
        assert sentence("option-not-whole", option=call[-1], value="1.5") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info log.csv --memory-limit -1", "The memory limit '-1' is not understood."),
        ("twin --out x.csv --cases 9 --length 3 --activities 1.5", "not '1.5'."),
        ("twin --out x.csv --cases 9 --length 3 --activities=-1", "not '-1'."),
    ],
)
def test_numbers_that_cannot_be_meant_are_refused_at_once(
    capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize(
    "words",
    [
        "release {log} {out} -m laplace --epsilon 1 --max-length 5 --activities @{list}",
        "release {log} {out} -m evolve --epsilon 1 --activities a --attributes age --domain age=@{list}",
        "info {log} --map {list}",
        "release {log} {out} -m sacofa --epsilon 1 --activities a --max-length 5 -p rules_file={list}",
        "compare {log} {log} --use-cases conformance --model {list}",
    ],
)
def test_lists_that_have_no_end_or_are_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr(_files, "_PATIENCE", 0.1)
    log, pipe, large = tmp_path / "log.csv", tmp_path / "pipe", tmp_path / "large"
    log.write_text("case,activity,timestamp\n1,a,2024-01-01\n")
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate((64 << 20) + 1)
    for place, said in (("/dev/zero", "no regular file"), (pipe, "nobody writes"), (large, "more than 64 MiB")):
        assert main(words.format(log=log, out=tmp_path / "out.csv", list=place).split()) in (1, 2)
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_a_list_may_begin_with_the_mark_of_windows(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfRegister\r\nTriage\r\n")
    assert declared_list(f"@{tmp_path / 'list.txt'}") == ("Register", "Triage")
