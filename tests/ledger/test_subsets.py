"""Releases of subsets: an account spends the most that any case lost.

It refuses before that exceeds the budget.
"""

import contextlib
import csv
import io
import itertools
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import openly
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_tools import SMALL, guarantee
from refusals import refused, sentence

import veilog
from veilog.cli import main
from veilog.errors import BudgetError
from veilog.ledger.accounts import Account, as_csv, check_paid
from veilog.ledger.entry import Cost, Entry
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.privacy.partition import Partition

VALUES = {"month": ["2024-01", "2024-02", "none"], "ward": ["A", "B"]}
SUBSETS = [None, *(f"{rule}={value}" for rule, values in VALUES.items() for value in values)]
NOTHING = Fraction(0), Fraction(0)
COSTS = st.tuples(st.integers(0, 20), st.integers(0, 9)).map(lambda n: (Fraction(n[0], 10), Fraction(n[1], 1000)))
RELEASES = st.lists(st.tuples(st.sampled_from(SUBSETS), COSTS), max_size=12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


def account(releases: list[tuple[str | None, Cost]], budget: Cost | None = None, unit: str = "case") -> Account:
    entries = tuple(
        Entry(i, 1, "now", "laplace", False, {}, unit, *cost, "charged", None, (), subset)
        for i, (subset, cost) in enumerate(releases)
    )
    return Account(1, "log", unit, budget, entries)


def of_cases(releases: list[tuple[str | None, Cost]], fixed: str | None = None) -> list[Cost]:
    """Return the losses of all possible cases: one for each choice of subsets."""
    lost = []
    for chosen in itertools.product(*([f"{rule}={value}" for value in values] for rule, values in VALUES.items())):
        mine = [cost for subset, cost in releases if subset is None or subset in chosen]
        if fixed is None or fixed in chosen:
            lost.append((sum((e for e, _ in mine), Fraction(0)), sum((d for _, d in mine), Fraction(0))))
    return lost


@pytest.mark.slow
@given(releases=RELEASES, subset=st.sampled_from(SUBSETS))
def test_an_account_spends_what_the_dearest_case_lost(
    releases: list[tuple[str | None, Cost]], subset: str | None
) -> None:
    lost = of_cases(releases, subset)
    assert account(releases).spent_on(subset) == (max(e for e, _ in lost), max(d for _, d in lost))
    assert account(releases).spent == account(releases).spent_on(None)


@pytest.mark.slow
@given(releases=RELEASES, budget=COSTS)
def test_whatever_was_let_through_no_case_lost_more_than_the_budget(
    releases: list[tuple[str | None, Cost]], budget: Cost
) -> None:
    let_through: list[tuple[str | None, Cost]] = []
    for subset, cost in releases:
        with contextlib.suppress(BudgetError):
            check_paid(account(let_through, budget), cost, "case", subset)
            let_through.append((subset, cost))
            continue
        after = of_cases([*let_through, (subset, cost)])
        assert any(lost > limit for case in after for lost, limit in zip(case, budget, strict=True)), "refused in vain"
    assert all(e <= budget[0] and d <= budget[1] for e, d in of_cases(let_through))


@pytest.mark.slow
@given(releases=RELEASES)
def test_persons_have_cases_in_several_subsets_so_theirs_add_up(releases: list[tuple[str | None, Cost]]) -> None:
    total = [sum((cost[i] for _, cost in releases), Fraction(0)) for i in (0, 1)]
    assert list(account(releases, unit="patient").spent or ()) == total


@pytest.mark.slow
def test_months_cost_their_maximum_and_the_whole_adds_to_each(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 1)
    for month, epsilon in (("2024-01", "0.5"), ("2024-02", "0.3"), ("2024-03", "0.5")):
        held = ledger.reserve(SMALL, "laplace", epsilon=Fraction(epsilon), subset=Partition.of(f"month={month}"))
        held.settle(guarantee(Fraction(epsilon)))
    found = ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.4")).entered.account()
    assert found.spent == (Fraction("0.9"), 0) and found.left == (Fraction("0.1"), 0)
    assert found.left_for("month=2024-02") == (Fraction("0.3"), 0)
    with refused(BudgetError, "budget-of-subset-exceeded", asked="0.2", budget="1", left="0.1", subset="month=2024-01"):
        ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.2"), subset=Partition.of("month=2024-01"))
    ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.2"), subset=Partition.of("month=2024-02"))
    with refused(BudgetError, "budget-exceeded", left="0.1"):
        ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.2"))
    ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.1"), subset=Partition.of("ward=A"))
    assert ledger.show()[0].spent == (1, 0), "another rule adds its own largest"
    with pytest.raises(BudgetError):
        ledger.reserve(SMALL, "laplace", epsilon=Fraction("0.1"), subset=Partition.of("month=2024-03"))


@pytest.mark.slow
def test_releases_of_subsets_are_entered_and_refused_before_any_question(path: Path) -> None:
    log = hospital(300, seed=3)
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(log, 1)
    for urgency in (1, 2):
        openly.release(log, "laplace", epsilon=1, subset=f"urgency={urgency}", ledger=ledger)
    (found,) = ledger.show()
    assert found.spent == (1, 0)
    assert [entry.subset for entry in found.entries] == ["urgency=1", "urgency=2"]
    assert [entry.guarantee and entry.guarantee["subset"] for entry in found.entries] == [
        e.subset for e in found.entries
    ]
    with refused(BudgetError, "budget-of-subset-exceeded", subset="urgency=2"):
        openly.release(log, "laplace", epsilon=1, subset="urgency=2", ledger=ledger)
    with refused(BudgetError, "budget-exceeded", left="0"):
        openly.release(log, "laplace", epsilon=1, ledger=ledger)


@pytest.mark.slow
def test_subsets_of_a_log_that_is_read_in_two_ways_add_up(path: Path, tmp_path: Path) -> None:
    """Subsets of a log read in two ways add up, as a case may be in March and April."""
    rows = [f"c{i},a,2024-03-31 22:00,2024-04-01 05:00" for i in range(3)]
    (tmp_path / "log.csv").write_text("\n".join(["case,activity,start_time,end_time", *rows]) + "\n")
    ways = {how: veilog.read(tmp_path / "log.csv", lifecycle=how) for how in (None, "complete", "start", "Intervals")}
    assert len({log.read_as for log in ways.values()}) == 4
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(ways[None], 3)
    number = ledger.account(ways[None])
    assert number is not None

    def spend(how: str | None, month: str) -> None:
        ledger.enter(ways[how], account=number.number)
        ledger.reserve(ways[how], "laplace", epsilon=Fraction(1), subset=Partition.of(f"month={month}"))

    spend("start", "2024-03")
    spend("start", "2024-04")
    (account,) = ledger.show()
    assert account.spent == (1, 0), "one case is in one of both"
    spend("complete", "2024-04")
    (account,) = ledger.show()
    assert account.spent == (2, 0) and account.left_for("month=2024-05") == (1, 0)
    assert [entry.subset for entry in account.entries] == ["month=2024-03", "month=2024-04", "month=2024-04"]
    spend("start", "2024-05")
    with refused(BudgetError, "budget-of-subsets-read-apart-exceeded", subset="month=2024-04"):
        spend("start", "2024-04")
        spend("start", "2024-04")
    assert account.together(Fraction(1, 10**6)) is not None
    assert "month=2024-04" in json.dumps(account.to_json()) and "\\u001f" not in json.dumps(account.to_json())


def test_a_subset_of_one_account_is_that_of_the_account_it_is_put_on(path: Path) -> None:
    """A subset's releases count for the subset after the account is put on another."""
    ledger = Ledger.open(path, create=True)
    ledger.reserve(SMALL, "laplace", epsilon=Fraction(1), subset=Partition.of("month=2024-01"))
    grown = replace(SMALL, counts=SMALL.counts + 5)
    ledger.enter(grown, account=1)
    ledger.reserve(grown, "laplace", epsilon=Fraction(1), subset=Partition.of("month=2024-02"))
    assert ledger.show()[0].spent == (1, 0)
    ledger.reserve(grown, "laplace", epsilon=Fraction(1), subset=Partition.of("month=2024-01"))
    assert ledger.show()[0].spent == (2, 0)


def test_the_subset_is_shown_and_exported(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.reserve(SMALL, "laplace", epsilon=Fraction(1))
    assert "cases" not in capsys.readouterr().out
    (before,) = csv.DictReader(io.StringIO(as_csv(ledger.show())))
    assert "subset" not in before and "subset" not in json.dumps(ledger.show()[0].to_json())
    ledger.reserve(SMALL, "laplace", epsilon=Fraction(1), subset=Partition.of("ward=[b]A"))
    assert main(["ledger", "show", str(path), "--json", str(tmp_path / "out.json")]) == 0
    shown = capsys.readouterr().out
    assert "ward=[b]A" in shown
    (told,) = json.loads((tmp_path / "out.json").read_text())["accounts"]
    assert [release.get("subset") for release in told["releases"]] == [None, "ward=[b]A"]
    rows = list(csv.DictReader(io.StringIO(as_csv(ledger.show()))))
    assert [row["subset"] for row in rows] == ["", "ward=[b]A"]


DAYS = [f"2024-03-{day:02}" for day in range(1, 8)]
SPANS = [None, "ward=A", *(f"began={a}..{b}" for a, b in itertools.combinations(DAYS, 2))]


@pytest.mark.slow
@given(
    releases=st.lists(st.tuples(st.sampled_from(SPANS), COSTS), max_size=8),
    subset=st.sampled_from([span for span in SPANS if span and span.startswith("began")]),
)
def test_of_spans_of_days_the_dearest_day_counts(releases: list[tuple[str | None, Cost]], subset: str) -> None:
    """In spans of days the day with the largest loss counts, on the ward or not."""
    ends = {text: tuple(text.partition("=")[2].split("..")) for text in SPANS if text and "began" in text}

    def lost(day: str, ward: bool) -> Cost:
        def touched(text: str | None) -> bool:
            if text is None or (text == "ward=A" and ward):
                return True
            return text in ends and ends[text][0] <= day < ends[text][1]

        mine = [cost for text, cost in releases if touched(text)]
        return sum((e for e, _ in mine), Fraction(0)), sum((d for _, d in mine), Fraction(0))

    cases = {day: [lost(day, ward) for ward in (True, False)] for day in DAYS}
    everybody = list(itertools.chain.from_iterable(cases.values()))
    held = account(releases)
    assert held.spent == (max(e for e, _ in everybody), max(d for _, d in everybody))
    some = [one for day in DAYS if ends[subset][0] <= day < ends[subset][1] for one in cases[day]]
    assert held.spent_on(subset) == (max(e for e, _ in some), max(d for _, d in some))
    if held.spent is not None and all(cost[1] == 0 for _, cost in releases):
        together = held.together(Fraction(1, 10**6))
        assert together.planned is not None and together.planned <= held.spent[0]


def test_an_attribute_that_is_called_as_spans_are_adds_up() -> None:
    cost = Fraction(1), Fraction(0)
    assert account([("began=A", cost), ("began=2024-03-01..2024-03-02", cost)]).spent == (2, 0)


@pytest.mark.slow
def test_a_log_that_grows_every_night_stays_on_its_account(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that grows every night stays on its account, each day released once."""
    whole = hospital(240, seed=1)
    book, out = tmp_path / "book.ledger", tmp_path / "out.csv"
    common = ["-m", "laplace", "-p", "depth=1", "--epsilon", "1", "--no-compare", "--quiet", "--overwrite"]
    common += ["--activities", ",".join(ACTIVITIES)]
    common += ["--ledger", str(book)]
    first = tmp_path / "0.xes"
    veilog.write(whole.only(np.arange(20)), first)
    assert main(["ledger", "set", str(first), "--epsilon", "1.5", "--ledger", str(book), "--account", "ward-7"]) == 0
    for night, (since, until) in enumerate(
        itertools.pairwise(["2024-01-01", "2024-01-03", "2024-01-05", "2024-01-08"])
    ):
        log = tmp_path / f"night-{night}.xes"
        veilog.write(whole.only(np.arange(220 + 10 * night)), log, overwrite=True)
        arguments = ["release", str(log), str(out), *common, "--account", "ward-7", "--since", since, "--until", until]
        assert main(arguments) == 0, capsys.readouterr().err
    (one,) = Ledger.open(book).show()
    assert (len(one.entries), one.spent) == (3, (1, 0))
    again = [
        "release",
        str(log),
        str(out),
        *common,
        "--account",
        "ward-7",
        "--since",
        "2024-01-02",
        "--until",
        "2024-01-04",
    ]
    assert main(again) == 3
    assert main(["release", str(log), str(out), *common, "--account", "ward-8"]) == 2
    assert sentence("did-you-mean", near="ward-7") in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "2024-02-30"], "--since takes a day"),
        (["--since", "2024-03-02", "--until", "2024-03-01"], "--since 2024-03-02 on and before --until 2024-03-01"),
        (["--until", "2024-03-02"], "--until needs --since"),
        (["--since", "2024-03-02", "--subset", "month=2024-03"], sentence("subset-and-since")),
        (["--account", "ward-7"], "--ledger PATH"),
        (["--account", "ward-7", "--no-ledger"], sentence("ledger-options-contradict", option="--account")),
    ],
)
def test_spans_and_accounts_that_cannot_be_are_wrong_usage(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given_ = ["release", "log.xes", str(tmp_path / "out.csv"), "-m", "laplace", "--epsilon", "1", "--activities", "a"]
    assert main([*given_, "--max-length", "5", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
