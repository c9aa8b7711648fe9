"""``--since last`` begins after the last written or empty release of the ledger."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from refusals import refused, sentence

import veilog
from veilog.cli import main
from veilog.errors import ParameterError
from veilog.ledger.accounts import Account, last_span
from veilog.ledger.entry import Entry, State
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.messages import Message

ASKED = ["-m", "laplace", "-p", "depth=1", "--epsilon", "1", "--no-compare"]
ASKED += ["--activities", ",".join(ACTIVITIES), "--ledger", "w.ledger"]
Night = Callable[..., int]


def account(*spans: tuple[str | None, State], unit: str = "case", way: str = "") -> Account:
    entries = tuple(
        Entry(n, 1, "", "evolve", False, {}, unit, Fraction(1), Fraction(0), state, None, (), subset, None, way)
        for n, (subset, state) in enumerate(spans, 1)
    )
    return Account(1, "ward-7", "case", None, entries)


def days(first: int, end: int, state: State = "written") -> tuple[str, State]:
    return f"began=2024-03-{first:02}..2024-03-{end:02}", state


def ends(*spans: tuple[str | None, State]) -> str:
    return last_span([account(*spans)], "ward-7").end


def test_it_is_the_day_on_which_the_last_release_ended_in_whatever_order_they_were_made() -> None:
    assert ends(days(1, 2), days(2, 4)) == "2024-03-04"
    assert ends(days(2, 4), days(1, 2)) == "2024-03-04"
    assert ends(days(1, 6), days(2, 4)) == "2024-03-06", "one within another"
    assert ends(("month=2024-05", "written"), days(1, 2), (None, "written"), ("began=X", "written")) == "2024-03-02"


@pytest.mark.parametrize("state", ["reserved", "charged", "withdrawn"])
def test_what_was_not_written_was_not_released(state: State) -> None:
    """The days of a failed release are in the next one, and none of them is missed."""
    last = last_span([account(days(1, 2), days(2, 3, state))], "ward-7")
    assert last.end == "2024-03-02"
    assert [entry.number for entry in last.lost] == ([] if state == "withdrawn" else [2])
    assert bool(last.in_words.values["lost"]) == (state != "withdrawn")
    assert not last_span([account(days(1, 2, state), days(1, 3))], "ward-7").lost, "they were made up for"


def test_a_night_that_came_out_empty_was_answered() -> None:
    """A night that came out empty counts as answered, and is not asked again."""
    entries = account(days(1, 2), days(2, 3, "charged"), days(3, 4, "charged")).entries
    quiet = replace(entries[1], guarantee={"cases": 0})
    last = last_span([replace(account(), entries=(entries[0], quiet, entries[2]))], "ward-7")
    assert last.end == "2024-03-03" and [entry.number for entry in last.lost] == [3]
    assert (last.in_words.code, last.in_words.values["number"]) == ("span-begins", 2)
    assert last.in_words.values["empty"] == Message("span-begins-empty")
    assert not replace(quiet, guarantee={"cases": 1}).empty


def test_the_ledger_knows_what_came_out_empty(tmp_path: Path) -> None:
    log, ledger = hospital(20, seed=1), Ledger.open(tmp_path / "w.ledger", account="ward-7", create=True)
    subset = "began=2024-01-01..2024-01-03"
    made = veilog.release(log, "travas", epsilon="0.1", delta="1e-6", ledger=ledger, subset=subset, seed=1)
    assert made.variants.cases == 0
    assert [entry.empty for entry in ledger.show()[0].entries] == [True]
    assert ledger.since_last(log, until="2024-01-05").value == "2024-01-03..2024-01-05"


def test_days_in_no_release_are_refused_until_two_releases_join_after_them() -> None:
    with refused(ParameterError, "span-leaves-gap", max="2024-03-02", begin="2024-03-04", end="2024-03-05"):
        ends(days(1, 2), days(4, 5))
    assert ends(days(1, 2), days(4, 5), days(2, 4)) == "2024-03-05", "released"
    assert ends(days(1, 2), days(4, 5), days(5, 6)) == "2024-03-06", "left out on purpose"
    assert ends(days(4, 5)) == "2024-03-05", "the first of all"


def test_an_account_that_does_not_tell_is_refused() -> None:
    with refused(ParameterError, "span-without-account"):
        last_span([account(days(1, 2))], None)
    with refused(ParameterError, "span-account-missing", name="ward-8", meant=Message("did-you-mean", near="ward-7")):
        last_span([account(days(1, 2))], "ward-8")
    with refused(ParameterError, "span-account-ambiguous"):
        last_span([account(), account()], "ward-7")
    for nothing in ([], [("month=2024-03", "written")], [days(1, 2, "charged")]):
        with refused(ParameterError, "span-without-release"):
            ends(*nothing)


def test_another_unit_or_another_way_of_reading_is_refused() -> None:
    last = last_span([account(days(1, 2), unit="Patient", way='{"case": "Visit"}')], "ward-7")
    last.check("Patient", '{"case": "Visit"}')
    with refused(ParameterError, "span-of-other-unit"):
        last.check("case")
    with refused(ParameterError, "span-read-otherwise") as caught:
        last.check("Patient", '{"case": "Stay"}')
    assert caught.value.message.values["differences"] == "case: 'Visit', now 'Stay'"
    assert caught.value.message.values["end"] == "2024-03-02"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """Return a nightly job, which writes the log so far and releases up to a day."""
    monkeypatch.chdir(tmp_path)
    whole = hospital(240, seed=1)
    veilog.write(whole.only(np.arange(20)), "first.csv")
    set_ = ["ledger", "set", "first.csv", "--epsilon", "2.5", "--ledger", "w.ledger", "--account", "ward-7"]
    assert main(set_) == 0

    def run(cases: int, until: str, *more: str, since: str = "last", log: str = "ward.csv") -> int:
        veilog.write(whole.only(np.arange(cases)), "ward.csv", overwrite=True)
        span = ["--account", "ward-7", "--since", since, "--until", until]
        return main(["release", log, f"{until}.xes", *ASKED, *span, *more])

    return run


def subsets() -> list[str | None]:
    return [entry.subset for entry in Ledger.open("w.ledger").show()[0].entries]


@pytest.mark.slow
def test_a_night_takes_what_the_failed_one_before_it_left(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    assert night(100, "2024-01-03") == 2, "nothing tells yet"
    assert night(100, "2024-01-03", since="2024-01-01") == 0
    assert night(150, "2024-01-05", log="away.csv") == 1, "the export was not there"
    capsys.readouterr()
    assert night(200, "2024-01-07") == 0
    said = " ".join(capsys.readouterr().out.split())
    begins = sentence("span-begins", end="2024-01-03", number=1, account="ward-7", empty="", lost="")
    assert f"since {begins}" in said and sentence("cases-between", first="2024-01-03", end="2024-01-07") in said
    assert subsets() == ["began=2024-01-01..2024-01-03", "began=2024-01-03..2024-01-07"]
    assert Ledger.open("w.ledger").show()[0].spent == (1, 0), "no case twice"
    assert night(200, "2024-01-07", "--overwrite") == 2, "all of it is released"
    refusal = sentence("span-already-released", end="2024-01-07", number="ward-7", number_2=2, end_2="2024-01-07")
    assert refusal in " ".join(capsys.readouterr().err.split())
    assert len(subsets()) == 2


@pytest.mark.slow
def test_a_release_that_was_paid_for_and_is_nowhere_is_made_again_and_that_is_said(
    night: Night, capsys: pytest.CaptureFixture[str]
) -> None:
    assert night(100, "2024-01-03", since="2024-01-01") == 0
    veilog.release(
        "ward.csv",
        "laplace",
        depth=1,
        epsilon=1,
        activities=ACTIVITIES,
        ledger=Ledger.open("w.ledger", account="ward-7"),
        subset="began=2024-01-03..2024-01-05",
    )
    capsys.readouterr()
    assert night(150, "2024-01-05") == 0
    assert sentence("span-begins-lost", numbers="2") in " ".join(capsys.readouterr().out.split())
    assert Ledger.open("w.ledger").show()[0].spent == (2, 0), "a case of these days lost both"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--time-format", "dd/mm/yyyy"], "was read in another way"),
        (["--unit", "Patient", "--max-cases", "2"], "protects 'case', and this one 'Patient'"),
        (["--on", "empty-trace=drop"], "was read in another way"),
    ],
)
def test_a_night_that_is_another_is_refused_before_anything_is_asked(
    night: Night, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert night(100, "2024-01-03", since="2024-01-01") == 0
    assert night(150, "2024-01-05", *more) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert len(subsets()) == 1


@pytest.mark.slow
def test_a_dry_run_says_the_same_days_and_enters_nothing(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    assert night(100, "2024-01-03", since="2024-01-01") == 0
    capsys.readouterr()
    assert night(150, "2024-01-05", "--dry-run", "--sizes", "log") == 0
    days = sentence("cases-between", first="2024-01-03", end="2024-01-05")
    assert days in " ".join(capsys.readouterr().out.split())
    assert len(subsets()) == 1


@pytest.mark.slow
def test_without_an_account_it_is_refused(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--ledger", "w.ledger"], ["--no-ledger"]):
        words = ["release", "first.csv", "o.xes", "-m", "evolve", "--epsilon", "1", "--activities", "log", *more]
        assert main([*words, "--since", "last"]) == 2
        assert "Add --account NAME" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_in_python_the_subset_is_the_ledgers(night: Night) -> None:
    assert night(100, "2024-01-03", since="2024-01-01") == 0
    log = veilog.read("ward.csv")
    ledger = Ledger.open("w.ledger", account="ward-7")
    subset = ledger.since_last(log, until="2024-01-05")
    assert str(subset) == "began=2024-01-03..2024-01-05"
    assert ledger.since_last().value.startswith("2024-01-03..2")
    released = veilog.release(log, "laplace", depth=1, epsilon=1, activities=ACTIVITIES, ledger=ledger, subset=subset)
    assert str(ledger.since_last(log, until=datetime.date(2024, 1, 7))) == "began=2024-01-03..2024-01-07", "not saved"
    released.save("p.xes")
    assert str(ledger.since_last(log, until=datetime.date(2024, 1, 7))) == "began=2024-01-05..2024-01-07"
    with pytest.raises(ParameterError, match="another way"):
        ledger.since_last(veilog.read("ward.csv", policies={"empty-trace": "drop"}), until="2024-01-07")
    with pytest.raises(ParameterError, match="takes a day"):
        ledger.since_last(log, until="yesterday")
