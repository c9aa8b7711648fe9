"""Counting of an account: by sum, by plan or by composition, and its refusals."""

import contextlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import openly
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_tools import OTHER, SMALL, guarantee
from refusals import refused

from veilog.cli import main
from veilog.errors import BudgetError, ParameterError
from veilog.ledger.accounts import Account, check_paid
from veilog.ledger.entry import Cost, Entry
from veilog.ledger.ledger import Ledger
from veilog.ledger.rules import Composed, FixedSchedule, composed_budget, parse_rule, planned_budget, together
from veilog.logs.synthetic.hospital import hospital
from veilog.privacy.account.composition import planned_epsilon, renyi_epsilon, renyi_of
from veilog.privacy.curator import Curator
from veilog.privacy.partition import Partition

TENTH, NONE = Fraction(1, 10), Fraction(0)
MILLIONTH = Fraction(1, 10**6)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "log.ledger", create=True)


def entries(costs: Iterable[Cost], subset: str | None = None, unit: str = "case") -> tuple[Entry, ...]:
    return tuple(
        Entry(i, 1, "now", "laplace", False, {}, unit, *cost, "charged", None, (), subset)
        for i, cost in enumerate(costs, 1)
    )


def composed(epsilon: Fraction, delta: Fraction, made: tuple[Entry, ...] = (), since: int = 0) -> Account:
    """Return an account that composes the releases after ``since``."""
    rule = composed_budget(made[:since], "case", since, (epsilon, delta))
    return Account(1, "log", "case", (epsilon, delta), made, rule)


def let_through(account: Account, cost: Cost, most: int = 1000) -> int:
    """Return how many releases of one cost the account allows."""
    for number in range(most):
        try:
            check_paid(account, cost, "case")
        except BudgetError:
            return number
        account = account.with_release(cost, None)
    return most


@pytest.mark.slow
def test_a_budget_that_is_composed_lets_more_through_than_the_sum() -> None:
    account = composed(Fraction(5), MILLIONTH)
    made = let_through(account, (TENTH, NONE))
    assert isinstance(account.counting, Composed)
    order = account.counting.order
    assert renyi_epsilon(made * renyi_of(TENTH, order), MILLIONTH / 2, order) <= 5
    assert renyi_epsilon((made + 1) * renyi_of(TENTH, order), MILLIONTH / 2, order) > 5
    assert made == 93 and let_through(replace(account, counting=None), (TENTH, NONE)) == 50
    assert let_through(account, (Fraction(1), NONE)) == 5, "few large ones are paid for by the sum"
    assert let_through(composed(Fraction("5.3"), MILLIONTH), (TENTH, NONE)) > 100


def test_half_of_delta_is_for_the_deltas_of_the_releases() -> None:
    account = composed(Fraction(5), MILLIONTH)
    assert account.left == (5, MILLIONTH / 2)
    assert let_through(account, (TENTH, MILLIONTH / 10)) == 5
    with refused(BudgetError, "budget-exceeded", word="delta", asked="6e-07", budget="1e-06", left="5e-07"):
        check_paid(account, (TENTH, MILLIONTH * 6 / 10), "case")


@pytest.mark.slow
def test_a_plan_lets_through_so_many_of_so_much(ledger: Ledger) -> None:
    account = ledger.set_plan(SMALL, 100, "0.1", "1e-6")
    assert account.budget is not None and account.budget[1] == MILLIONTH
    assert abs(float(account.budget[0]) / 4.69 - 1) < 0.02
    assert let_through(account, (TENTH, NONE)) == 100
    assert let_through(account, (TENTH / 2, NONE)) == 100, "a smaller one takes a place as well"
    with refused(BudgetError, "plan-exceeded", pair="epsilon = 0.2", remaining=100, pair_2="epsilon = 0.1"):
        ledger.reserve(SMALL, "laplace", epsilon=2 * TENTH)
    with refused(BudgetError, "plan-exceeded", pair="epsilon = 0.1, delta = 1e-09"):
        ledger.reserve(SMALL, "laplace", epsilon=TENTH, delta=Fraction(1, 10**9))
    held = ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    assert held.entered.account().releases_left == 99
    held.withdraw()
    assert ledger.show()[0].releases_left == 100, "nothing was asked"


def test_a_planned_epsilon_is_that_of_its_releases() -> None:
    each = TENTH, Fraction(1, 10**9)
    plan, budget = planned_budget((), "case", 0, 50, each, MILLIONTH)
    assert plan == FixedSchedule(0, 50, each)
    found = planned_epsilon({each: 50}, MILLIONTH)
    assert found is not None and 0 <= budget[0] - found <= Fraction(1, 10**9)
    with refused(ParameterError, "plan-delta-too-small"):
        planned_budget((), "case", 0, 5000, each, MILLIONTH)
    for releases in (0, -1, 10**7, True):
        with refused(ParameterError, "plan-releases-out-of-range"):
            planned_budget((), "case", 0, releases, each, MILLIONTH)


@pytest.mark.slow
def test_what_was_released_before_counts_by_the_sum(ledger: Ledger) -> None:
    """Earlier releases, of which no answers are kept, count by the sum."""
    for _ in range(3):
        ledger.reserve(SMALL, "laplace", epsilon=TENTH).settle(guarantee(TENTH))
    account = ledger.set_budget(SMALL, 5, "1e-6", composed=True)
    assert account.counting == Composed(3, composed(Fraction("4.7"), MILLIONTH).counting.order)  # type: ignore[union-attr]
    assert let_through(account, (TENTH, NONE)) == let_through(composed(Fraction("4.7"), MILLIONTH), (TENTH, NONE)) < 93
    planned = ledger.set_plan(SMALL, 10, "0.1", "1e-6")
    alone, budget = planned_budget((), "case", 0, 10, (TENTH, NONE), MILLIONTH)
    assert planned.counting == replace(alone, since=3) and planned.budget == (budget[0] + 3 * TENTH, MILLIONTH)
    assert planned.composed == (3 * TENTH, 0)
    with refused(ParameterError, "plan-budget-used-up"):
        ledger.set_budget(SMALL, "0.3", "1e-6", composed=True)


@pytest.mark.slow
def test_a_rule_stays_when_its_limit_changes_and_goes_when_it_is_not_named(ledger: Ledger) -> None:
    first = ledger.set_budget(SMALL, 2, "1e-6", composed=True)
    ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    second = ledger.set_budget(SMALL, 4, "1e-6", composed=True)
    assert second.counting == first.counting and second.budget == (4, MILLIONTH)
    plan = ledger.set_plan(SMALL, 9, "0.1", "1e-6")
    assert isinstance(plan.counting, FixedSchedule) and plan.counting.since == 1
    ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    again = ledger.set_plan(SMALL, 9, "0.1", "1e-6")
    assert again.counting == plan.counting and again.releases_left == 8 and again.budget == plan.budget
    other = ledger.set_plan(SMALL, 10, "0.1", "1e-6")
    assert isinstance(other.counting, FixedSchedule) and other.counting.since == 2 and other.releases_left == 10
    assert ledger.set_budget(SMALL, 4, "1e-6").counting is None
    assert ledger.set_budget(SMALL, None).budget is None


def test_a_lower_limit_of_composition_begins_anew(ledger: Ledger) -> None:
    """A lower composition limit begins anew, as it was chosen after seeing releases."""
    first = ledger.set_budget(SMALL, 4, "1e-6", composed=True)
    ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    lower = ledger.set_budget(SMALL, 2, "1e-6", composed=True)
    assert isinstance(first.counting, Composed) and isinstance(lower.counting, Composed)
    assert (first.counting.since, lower.counting.since) == (0, 1)
    assert lower.left is not None and lower.left[0] < 2 - TENTH / 2


@pytest.mark.parametrize("releases", [0, 1_000_001, True])
def test_a_plan_is_of_one_to_a_million_releases(ledger: Ledger, releases: int) -> None:
    with pytest.raises(ParameterError) as refused:
        ledger.set_plan(SMALL, releases, TENTH, MILLIONTH)
    assert refused.value.parameter == "releases"


def test_composing_takes_a_delta_and_releases_that_are_bounded(ledger: Ledger) -> None:
    with refused(ParameterError, "plan-delta-not-positive"):
        ledger.set_budget(SMALL, 2, composed=True)
    with refused(ParameterError, "ledger-delta-without-epsilon"):
        ledger.set_budget(SMALL, None, composed=True)
    ledger.reserve(SMALL, "laplace", epsilon=None)
    for call in (
        lambda: ledger.set_budget(SMALL, 2, "1e-6", composed=True),
        lambda: ledger.set_plan(SMALL, 2, 1, "1e-6"),
    ):
        with refused(BudgetError, "account-not-composable"):
            call()
    assert ledger.show()[0].counting is None


@pytest.mark.slow
def test_what_is_answered_counts_answer_by_answer_once_it_is_charged(ledger: Ledger) -> None:
    """Ten queries at 0.01 count answer by answer once charged, less than one at 0.1."""
    ledger.set_budget(SMALL, 5, "1e-6", composed=True)
    held = ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    before = ledger.show()[0].composed
    curator = Curator(SMALL)
    for _ in range(10):
        curator.count("0.01")
    held.settle(curator.guarantee())
    (account,) = ledger.show()
    ((answer, times),) = account.entries[0].answers or ()
    assert (answer.epsilon, answer.laplace, times) == (Fraction(1, 100), (Fraction(1, 100), 1), 10)
    assert account.spent == (TENTH, 0) and before is not None and account.composed is not None
    rule = account.counting
    assert isinstance(rule, Composed)
    assert 9 < rule._renyi(replace(account.entries[0], kept_answers=None))[0] / rule._renyi(account.entries[0])[0] < 11
    many = entries([(TENTH, NONE)] * 100)
    kept = tuple(replace(entry, kept_answers=account.entries[0].kept_answers) for entry in many)
    by_answers, by_claims = (together(each, "case", MILLIONTH) for each in (kept, many))
    assert by_answers.planned == by_claims.planned, "a release counts as it claims where a plan is made of it"
    assert by_answers.composed is not None and by_claims.composed is not None
    assert by_answers.composed < by_claims.composed / 2


def test_questions_to_a_sample_count_as_what_the_release_claims(ledger: Ledger) -> None:
    held = ledger.reserve(SMALL, "laplace", epsilon=Fraction(1))
    curator = Curator(SMALL)
    curator.subsample(Fraction(1, 2)).count(1)
    held.settle(curator.guarantee())
    assert ledger.show()[0].entries[0].answers is None


@pytest.mark.slow
def test_answers_of_real_releases_never_cost_more_than_was_set_aside(ledger: Ledger) -> None:
    log = hospital(200, seed=2)
    for method, more in (
        ("evolve", {}),
        ("laplace", {}),
        ("laplace", {"delta": "1e-4"}),
        ("travas", {"delta": "1e-4"}),
    ):
        with contextlib.suppress(ParameterError):  # not every method has a use for a delta
            openly.release(log, method, epsilon=1, ledger=ledger, **more)
    (account,) = ledger.show()
    assert len(account.entries) >= 3 and all(entry.answers for entry in account.entries)
    for entry in account.entries:
        for order in (Fraction(3, 2), Fraction(6), Fraction(50)):
            rule = Composed(0, order)
            assert rule._renyi(entry)[0] <= rule._renyi(replace(entry, kept_answers=None))[0] + Fraction(1, 10**8)


@pytest.mark.slow
def test_subsets_compose_as_what_the_dearest_case_lost() -> None:
    account = composed(Fraction(5), MILLIONTH)
    for month in ("month=2024-01", "month=2024-02"):
        for _ in range(93):
            check_paid(account, (TENTH, NONE), "case", month)
            account = account.with_release((TENTH, NONE), month)
    for subset in (None, "month=2024-02", "ward=A"):
        with pytest.raises(BudgetError):
            check_paid(account, (TENTH, NONE), "case", subset)
    check_paid(account, (TENTH, NONE), "case", "month=2024-03")
    plan = Account(1, "log", "case", (Fraction(1), MILLIONTH), (), FixedSchedule(0, 2, (TENTH, NONE)))
    for subset in ("month=2024-01", "month=2024-02", None):
        plan = plan.with_release((TENTH, NONE), subset)
    assert plan.left == (0, 0) and plan.left_for("month=2024-03") == (TENTH, 0)


@settings(max_examples=10)
@given(costs=st.lists(st.tuples(st.integers(1, 20), st.sampled_from(["2024-01", "2024-02", None])), max_size=8))
@pytest.mark.slow
def test_what_subsets_cost_together_is_that_of_the_dearest_of_every_rank(costs: list[tuple[int, str | None]]) -> None:
    """No case loses more than stated, in the releases of each subset and of the whole."""
    made = tuple(
        replace(entry, counted=month and f"month={month}")
        for entry, (_, month) in zip(entries((Fraction(n, 20), NONE) for n, _ in costs), costs, strict=True)
    )
    found = together(made, "case", Fraction(1, 100))
    assert found.planned is not None and found.composed is not None
    for month in ("2024-01", "2024-02"):
        mine = [entry for entry in made if entry.subset in (None, f"month={month}")]
        alone = together(tuple(mine), "case", Fraction(1, 100))
        assert alone.planned is not None and alone.composed is not None
        assert found.planned >= alone.planned - Fraction(1, 50) and found.composed >= alone.composed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("costs", "delta", "limit"),
    [
        (["3"] * 2 + ["0.02"] * 1000, "1e-5", "10.9183"),
        (["4"] + ["0.05"] * 200, "1e-5", "8.3665"),
        (["0.5"] * 30 + ["3"], "1e-6", "18"),
        (["0.1"] * 100, "1e-6", "5.2076"),
    ],
)
def test_costs_chosen_later_are_the_smallest_limit_that_admits_them_in_their_order(
    costs: list[str], delta: str, limit: str
) -> None:
    """The composed cost is the smallest limit that admits the releases in their order.

    The best order afterwards gave less: 7.26 for the second, at which a limit refuses release 67 of 201.
    """
    made, at = entries((Fraction(cost), NONE) for cost in costs), Fraction(delta)
    found = together(made, "case", at).composed
    assert found is not None
    assert abs(found - Fraction(limit)) < Fraction(1, 10_000)

    def admitted(budget: Fraction, places: Iterable[int]) -> bool:
        rule = composed_budget((), "case", 0, (budget, at))
        return all(rule.room(made[:n], "case", (budget, at), None)[0] >= costs_of[n] for n in places)

    costs_of = [Fraction(cost) for cost in costs]
    last = len(made) - 1
    assert admitted(found, [*range(0, last, 1 + last // 20), last])
    assert not admitted(found - Fraction(1, 10**6), [last]), "no smaller limit does"


@pytest.mark.slow
def test_a_hundred_releases_at_a_tenth_in_words_and_numbers(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(4):
        ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    (account,) = ledger.show()
    found = replace(account, entries=entries([(TENTH, NONE)] * 100)).together(MILLIONTH)
    assert found is not None and found.planned is not None and found.composed is not None
    assert abs(float(found.planned) / 4.69 - 1) < 0.02 and 5 < found.composed < Fraction("5.21")
    assert main(["ledger", "show", str(ledger.path), "--delta", "1e-6", "--json", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"epsilon = 0\.4\b.*delta = 1e-06\b", shown)
    (told,) = json.loads((tmp_path / "out").read_text())["accounts"]
    assert told["together"] == {"delta": 1e-6, "costs_planned": pytest.approx(0.4, rel=1e-3), "costs_chosen": 0.4}
    assert "counting" not in told
    assert main(["ledger", "show", str(ledger.path)]) == 0
    assert "together" not in capsys.readouterr().out, "there is no delta to compose at"


@pytest.mark.slow
def test_rules_are_set_and_shown_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.csv"
    log.write_text("case,activity,time\n" + "".join(f"{i},a,2024-01-0{1 + i % 9}\n" for i in range(30)))
    out = tmp_path / "out.json"
    assert main(["ledger", "set", str(log), "--releases", "10", "--each", "0.1", "--delta", "1e-6"]) == 0
    assert re.search(r"\b10 .*epsilon = 0\.1; 10\b", " ".join(capsys.readouterr().out.split()))
    arguments = ["ledger", "set", str(log), "--epsilon", "2", "--delta", "1e-6", "--composed", "--json", str(out)]
    assert main(arguments) == 0
    told = json.loads(out.read_text())
    assert told["counting"]["how"] == "composed" and told["left"] == {"epsilon": 2.0, "delta": 5e-7}
    assert "by composition" in capsys.readouterr().out
    for wrong in (
        ["--releases", "10"], ["--each", "1"], ["--releases", "3", "--each", "1"], ["--composed"],
        ["--each-delta", "0"],
        ["--releases", "3", "--each", "1", "--delta", "1e-6", "--epsilon", "1"], ["--epsilon", "1", "--composed"],
    ):  # fmt: skip
        assert main(["ledger", "set", str(log), *wrong]) == 2
    assert Ledger.open(f"{log}.ledger").show()[0].budget == (2, MILLIONTH)


@pytest.mark.slow
def test_a_composed_limit_goes_on_only_where_none_is_lowered(ledger: Ledger) -> None:
    first = ledger.set_budget(SMALL, 5, "1e-6", composed=True)
    for _ in range(3):
        ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    assert ledger.set_budget(SMALL, 6, "1e-6", composed=True).counting == first.counting
    for epsilon, delta in (("5.9", "1e-6"), ("5.9", "1e-7"), ("6", "1e-8")):
        anew = ledger.set_budget(SMALL, epsilon, delta, composed=True)
        assert isinstance(anew.counting, Composed) and anew.counting.since == 3
        ledger.set_budget(SMALL, 6, "1e-6", composed=True)
    with refused(ParameterError, "plan-budget-used-up"):
        ledger.set_budget(SMALL, "0.3", "1e-6", composed=True)


@pytest.mark.slow
def test_an_account_is_worth_its_sum_or_its_limit_and_not_what_it_came_to_so_far() -> None:
    """An account is worth its sum or limit: an odometer read at will bounds nothing."""
    made = entries([(Fraction(1, 20), NONE)] * 80)
    held = composed(Fraction(6), MILLIONTH, made)
    assert held.composed is not None and held.composed[0] < 4
    assert held.strength == replace(held, budget=None, counting=None).strength == "none in practice"
    small = composed(Fraction(2), MILLIONTH, made[:50])
    assert small.strength == "moderate" and replace(small, budget=None, counting=None).strength == "weak"


def test_what_an_account_is_worth_heeds_its_delta_and_knows_composition() -> None:
    """An account's protection level heeds its delta and its composition, everywhere."""
    made = entries([(Fraction(1, 20), NONE)] * 50)
    held = composed(Fraction(2), Fraction(1, 10**4), made)
    assert held.strength == "moderate", "by its limit, the sum of 2.5 being weak"
    assert held.among(50).strength == "moderate"
    assert held.among(2_000).strength == "weak", "by the sum, which has no delta; of the limit 0.2 cases come out"
    assert held.among(20_000).among(10).strength == "weak"
    told = replace(made[-1], guarantee={"cases": 2_000, "level": "strong"})
    known = replace(held, entries=(*made[:-1], told))
    assert known.strength == known.totals()["level"] == "weak"


@pytest.mark.slow
def test_a_release_is_entered_with_the_cases_that_its_delta_is_judged_by(ledger: Ledger) -> None:
    released = openly.release(SMALL, "travas", epsilon=1, delta="0.01", ledger=ledger)
    account = ledger.account(SMALL)
    assert account is not None and account.entries[0].guarantee is not None
    assert account.entries[0].guarantee["cases"] == released.variants.cases
    words = (account.strength, released.guarantee.strength, account.entries[0].guarantee["level"])
    assert len(set(words)) == 1 and words[0] != "good"


@pytest.mark.slow
def test_an_account_that_takes_in_another_begins_anew(ledger: Ledger) -> None:
    ledger.reserve(OTHER, "laplace", epsilon=TENTH)
    ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    ledger.set_budget(SMALL, 5, "1e-6", composed=True)
    ledger.reserve(SMALL, "laplace", epsilon=TENTH, subset=Partition.of("month=2024-01"))
    moved = ledger.enter(OTHER, account=2)
    assert isinstance(moved.counting, Composed) and moved.counting.since == 3 and len(moved.entries) == 3
    assert moved.spent == moved.composed == (3 * TENTH, 0)


@pytest.mark.slow
@pytest.mark.parametrize("planned_first", [True, False], ids=["the plan takes in", "the plan is taken in"])
def test_a_plan_is_over_where_other_releases_come_to_it(ledger: Ledger, planned_first: bool) -> None:
    """A plan ends where other releases come to its account, and does not begin anew."""
    ledger.enter(SMALL)
    planned, other = (SMALL, OTHER) if planned_first else (OTHER, SMALL)
    budget = ledger.set_plan(planned, 4, TENTH, MILLIONTH).budget
    ledger.reserve(planned, "laplace", epsilon=TENTH)
    ledger.reserve(other, "laplace", epsilon=Fraction(5))
    both = ledger.enter(OTHER, account=1)
    assert both.budget == budget and both.counting is None
    assert both.spent == both.composed == (5 + TENTH, 0) and both.left == (0, MILLIONTH)
    assert both.strength == "none in practice"
    with refused(BudgetError, "budget-exceeded"):
        ledger.reserve(planned, "laplace", epsilon=TENTH)


def test_a_limit_that_is_refused_puts_nothing_together(ledger: Ledger) -> None:
    """A refused limit merges no accounts, because merged accounts cannot be separated."""
    for data in (SMALL, OTHER):
        ledger.reserve(data, "laplace", epsilon=Fraction(3))
    before = ledger.show()
    with refused(ParameterError, "plan-budget-used-up"):
        ledger.set_budget(OTHER, 5, "1e-6", composed=True, account=1)
    with refused(ParameterError, "plan-delta-too-small"):
        ledger.set_plan(OTHER, 3, TENTH, "1e-9", each_delta="1e-9", account=1)
    assert ledger.show() == before


def test_a_rule_goes_on_where_data_without_releases_come_to_it(ledger: Ledger) -> None:
    """A used plan stays used when data without releases join its account."""
    ledger.set_plan(SMALL, 1, TENTH, MILLIONTH)
    ledger.reserve(SMALL, "laplace", epsilon=TENTH)
    ledger.enter(OTHER)
    ledger.reserve(OTHER, "laplace", epsilon=Fraction(5)).withdraw()
    grown = ledger.enter(OTHER, account=1)
    assert grown.releases_left == 0 and isinstance(grown.counting, FixedSchedule) and grown.counting.since == 0
    with refused(BudgetError, "plan-exceeded", remaining=0):
        ledger.reserve(OTHER, "laplace", epsilon=TENTH)


@pytest.mark.parametrize("text", ["{}", '{"how": "guess"}', "[]", '{"how": "composed", "since": 1}', '{"how": "plan"}'])
def test_a_rule_that_is_none_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match="no rule"):
        parse_rule(text)


def test_a_rule_is_kept_exactly() -> None:
    for rule in (FixedSchedule(7, 3, (Fraction(1, 3), Fraction(1, 10**9))), Composed(7, Fraction(651, 100))):
        assert parse_rule(json.dumps(rule.to_json())) == rule
    assert parse_rule(None) is None


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "since"), [("1", "0.1", 0), ("1.5", "0.02", 0), ("2", "0.004", 1)])
def test_no_adversary_who_chooses_as_he_goes_gets_more_than_the_budget(epsilon: str, delta: str, since: int) -> None:
    """No adversary who chooses as he goes gets more than the budget.

    The best adversary against randomised response, with and without a chance of the truth, chooses each release after
    each answer. The search works backwards, and asks the account if it allows the release.
    """
    budget = Fraction(epsilon), Fraction(delta)
    menu = [(Fraction("0.2"), NONE), (Fraction("0.5"), budget[1] / 8), (Fraction("0.9"), NONE)]
    start = composed(*budget, entries([menu[0]] * since), since)

    @cache
    def paid(made: tuple[int, ...], place: int) -> bool:
        account = start
        for cost, number in zip(menu, made, strict=True):
            for _ in range(number):
                account = account.with_release(cost, None)
        with contextlib.suppress(BudgetError):
            check_paid(account, menu[place], "case")
            return True
        return False

    @cache
    def worth(made: tuple[int, ...], loss: Fraction) -> float:
        best = max(0.0, -math.expm1(float(budget[0] - loss)))
        for place, (e, d) in enumerate(menu):
            if paid(made, place):
                more = (*made[:place], made[place] + 1, *made[place + 1 :])
                p, told = 1 / (1 + math.exp(-float(e))), float(d)
                best = max(best, told + (1 - told) * (p * worth(more, loss + e) + (1 - p) * worth(more, loss - e)))
        return best

    p = 1 / (1 + math.exp(-0.2))
    first = [(p, menu[0][0]), (1 - p, -menu[0][0])] if since else [(1.0, NONE)]
    won = sum(chance * worth((0, 0, 0), loss) for chance, loss in first)
    assert 0 < won <= float(delta)
