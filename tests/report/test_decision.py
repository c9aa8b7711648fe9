"""The first screen: the word, whom it protects, whether it may be sent, and if what holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import veilog
from veilog import Variants, report
from veilog.logs.made_up.simulate import hospital
from veilog.privacy.account.strength import STRENGTHS
from veilog.releasing.owner.standing import Standing, standing_of
from veilog.report.decision import Decision, decided, of_person, owner_side, renewed
from veilog.report.dossier import dossier
from veilog.report.dossier.render import as_markdown
from veilog.report.facts import today
from veilog.report.figures import figure, tied
from veilog.report.told import told_by_file, told_by_release

LOG = hospital(300, seed=1)
VARIANTS = LOG.variants


def decision_of(released: veilog.Release, original: veilog.EventLog | Variants | None = None) -> Decision:
    owner = None if original is None else owner_side(original, standing_of(released))
    return decided(told_by_release(released), released.variants.cases, owner)


def said(decision: Decision) -> str:
    checks = [f"{check.state}: {check.asks} {check.why}" for check in decision.checks]
    return "\n".join(
        [decision.headline, decision.whom, decision.answer, *decision.reasons, *checks, *decision.cautions]
    )


def released_at(epsilon: str, log: Variants = VARIANTS, delta: str = "1e-6") -> veilog.Release:
    return veilog.release(log, "travas", epsilon=epsilon, delta=delta, allow_no_protection=True)


@pytest.mark.parametrize(
    ("epsilon", "tone", "word", "answer", "recipient"),
    [
        ("0.3", "good", "strong", "You may send it to anybody, if", "met: The recipient may be anybody."),
        ("1", "good", "good", "You may send it to anybody, if", "met: The recipient may be anybody."),
        ("2", "warn", "moderate", "You may send it to recipients whom you know, if", "open: The recipients are known"),
        ("3", "bad", "weak", "only to those who could be given the original log, if", "open: The recipients could be"),
    ],
)
def test_to_whom_it_may_go_follows_the_strength(
    epsilon: str, tone: str, word: str, answer: str, recipient: str
) -> None:
    decision = decision_of(replace(released_at(epsilon), variants=VARIANTS))
    assert (decision.tone, decision.strength) == (tone, word)
    assert answer in decision.answer
    assert recipient in said(decision)
    assert "It protects one case, such as one visit, and not a person who has several." in said(decision)


def test_at_epsilon_50_it_says_do_not_send_it() -> None:
    decision = decision_of(replace(released_at("50"), variants=VARIANTS))
    text = said(decision)
    assert decision.tone == "bad" and decision.answer == "Do not send it." and decision.checks == ()
    assert "Protection is none in practice." in text and "treat it as you treat the original" in text
    assert "You may" not in text


def test_an_empty_release_is_nothing_to_send() -> None:
    empty = replace(released_at("1"), variants=Variants.from_dict({}))
    decision = decision_of(empty, VARIANTS)
    assert decision.answer == "There is nothing to send: the release is empty." and decision.checks == ()
    assert decision.tone == "warn", "what protects nobody is not praised"
    assert "No case came through the noise." in said(decision)


def test_of_a_wide_log_the_names_that_occur_once_are_named_to_the_owner_alone() -> None:
    wide = Variants.from_dict({("arrive", "leave"): 400, **{("arrive", f"Dr. {i:03}"): 1 for i in range(300)}})
    released = veilog.release(wide, "laplace", epsilon=1, activities="log", depth=2, seed=None)
    inside, outside = said(decision_of(released, wide)), said(decision_of(released))
    assert "open: The names of all activities of the log are no secret" in inside
    assert (
        "There are 302, in one case only: “Dr. 000”, “Dr. 001”" in inside and "and 295 more. Look at these." in inside
    )
    assert "in one case only" not in outside and "302" not in outside
    declared = veilog.release(wide, "laplace", epsilon=1, activities=["arrive", "leave"], depth=2)
    assert "met: No name of an activity comes from the log unasked." in said(decision_of(declared, wide))


def test_of_a_log_of_one_case_the_release_is_called_noise() -> None:
    one = Variants.from_dict({("a", "b"): 1})
    released = veilog.release(one, "laplace", epsilon=1, activities=["a", "b"], depth=2)
    assert "The log has 1 case: too few for this ε." in said(decision_of(released, one))
    assert "too few" not in said(decision_of(released))
    assert "too few" not in said(decision_of(released_at("1"), VARIANTS))


def log_of_persons(folder: Path) -> veilog.EventLog:
    """Forty patients with a case each, and one with twenty."""
    lines = ["case,activity,timestamp,Patient"]
    for case in range(60):
        who = "p0" if case < 20 else f"p{case}"
        lines += [f"{case},{a},2024-01-{1 + case % 28:02}T10:0{i}:00Z,{who}" for i, a in enumerate("ab")]
    (folder / "log.csv").write_text("\n".join(lines))
    return veilog.read(folder / "log.csv")


def test_a_person_with_twenty_cases_stands_against_it_where_cases_are_protected(tmp_path: Path) -> None:
    log = log_of_persons(tmp_path)
    released = replace(veilog.release(log, "travas", epsilon=1, delta="1e-6"), variants=log.variants)
    decision = decision_of(released, log)
    text = said(decision)
    assert (
        "against: A case is what has to be protected" in text
        and "up to 20 each: --unit Patient --max-cases 2, with which 42 of the cases count" in text
    )
    assert "A person with 20 cases is protected at 20 times ε, ε = 20: protection is none in practice." in text
    assert decision.tone == "warn" and decision.answer.startswith("Not as it stands")
    assert "Patient" not in said(decision_of(released))
    person = veilog.release(log, "travas", epsilon=1, delta="1e-6", unit="Patient", max_cases=20)
    assert "met: One person is protected, with all the cases that count." in said(
        decision_of(replace(person, variants=log.variants), log)
    )


@pytest.mark.parametrize(
    ("released", "words"),
    [
        (lambda: veilog.release(LOG, "tlkc", as_published=True, k=5, l=2), "protects against less"),
        (lambda: veilog.release(LOG, "travas", epsilon=1, delta="1e-4", seed=1), "Seeded"),
    ],
    ids=["as published", "seeded"],
)
def test_where_nothing_is_proven_it_says_no_and_why(released: object, words: str) -> None:
    decision = decision_of(released(), LOG)  # type: ignore[operator]
    text = said(decision)
    assert decision.answer == "Do not send it." and decision.headline == "No protection is proven."
    assert words in text and "Nobody is protected by differential privacy." in text
    assert decision.checks == () and decision.tone == "bad"


@pytest.mark.parametrize(
    ("epsilons", "state", "words"),
    [
        (("1",), "met", "knows of no other"),
        (("0.5", "0.5"), "open", "cost ε = 1 together: protection by all of them is good"),
        (("3", "3"), "against", "cost ε = 6 together: protection by all of them is none in practice"),
    ],
)
def test_the_ledger_says_whether_there_are_other_releases(
    epsilons: tuple[str, ...], state: str, words: str, tmp_path: Path
) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    made = [
        veilog.release(VARIANTS, "laplace", epsilon=e, activities=list(VARIANTS.labels), depth=2, ledger=ledger)
        for e in epsilons
    ]
    text = said(decision_of(made[-1], VARIANTS))
    assert f"{state}: It is the only release of these data." in text and words in text
    assert "The ledger" not in said(decision_of(made[-1]))
    (tmp_path / "log.ledger").unlink()
    assert "open: It is the only release of these data. The ledger cannot be read." in said(
        decision_of(made[-1], VARIANTS)
    )


def released_in(ledger: veilog.Ledger, epsilon: str, log: Variants = VARIANTS) -> veilog.Release:
    return veilog.release(log, "laplace", epsilon=epsilon, activities=list(log.labels), depth=2, ledger=ledger)


def test_of_variants_it_says_nothing_about_columns() -> None:
    text = said(decision_of(released_at("1"), VARIANTS))
    assert "open: A case is what has to be protected" in text and "No column" not in text
    assert "No column looks as if it told persons" in said(decision_of(released_at("1"), hospital(300, seed=1)))


def test_what_was_decided_before_there_were_others_is_decided_anew(tmp_path: Path) -> None:
    """The first release is the only one until there is a second: together they are weak."""
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    first = replace(released_in(ledger, "1"), variants=VARIANTS)
    then = decision_of(first, VARIANTS)
    assert "met: It is the only release" in said(then) and then.tone == "good"
    assert renewed(then, standing_of(first)) == then
    released_in(ledger, "2")
    now = renewed(then, standing_of(first))
    assert "against: It is the only release" in said(now) and "cost ε = 3 together" in said(now)
    assert now.tone == "warn" and now.answer.startswith("Not as it stands")
    assert replace(now, tone=then.tone, answer=then.answer, checks=then.checks) == then, "the rest does not age"
    unsent = decision_of(replace(released_at("50"), variants=VARIANTS), VARIANTS)
    assert renewed(unsent, standing_of(first)) == unsent


def test_where_there_are_other_accounts_nobody_knows_whether_it_is_the_only_release(tmp_path: Path) -> None:
    """A ledger cannot know whether next month's file is about the same people."""
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True, name="klinik-03.csv")
    released_in(ledger, "1")
    grown = replace(ledger, name="klinik-04.csv")
    made = released_in(grown, "0.5", hospital(301, seed=1).variants)
    text = said(decision_of(made, VARIANTS))
    assert "open: It is the only release of these data. The ledger (account 2) knows of no other." in text
    assert "has 1 other account (klinik-03.csv): if it is about the same people, their ε add up." in text
    for n in range(302, 305):
        released_in(replace(ledger, name=f"klinik-{n}.csv"), "0.5", hospital(n, seed=1).variants)
    ledger.set_budget(hospital(400, seed=1).variants, "1")  # an account without releases adds nothing
    text = said(decision_of(made, VARIANTS))
    assert "has 4 other accounts (klinik-03.csv, klinik-302.csv, klinik-303.csv, …): if they are" in text
    released_in(grown, "4", hospital(301, seed=1).variants)
    text = said(decision_of(made, VARIANTS))
    assert "against: It is the only release of these data. The ledger knows of 2, which cost ε = 4.5" in text
    assert "has 4 other accounts" in text
    unnamed = decided(told_by_release(made), 10, owner_side(VARIANTS, standing_of(made, named=False)))
    assert "has 4 other accounts: if they are" in said(unnamed) and "klinik" not in said(unnamed)


def test_a_ledger_that_does_not_have_the_release_does_not_vouch_for_it(tmp_path: Path) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    budgeted = ledger.set_budget(VARIANTS, "1")
    told = told_by_release(released_at("1"))
    for account in (None, budgeted):
        text = said(decided(told, 10, owner_side(VARIANTS, Standing.of(account, ledger.show()))))
        assert "open: It is the only release of these data. The ledger does not have this release." in text


def test_what_is_written_says_of_which_day_it_is(tmp_path: Path) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    made = released_in(ledger, "1")
    for number, account in enumerate((None, ledger.account(VARIANTS))):
        report.write(made, tmp_path / f"{number}.html", VARIANTS, account=account)
        assert f"As of {today()} (UTC): The ledger (account 1)" in (tmp_path / f"{number}.html").read_text()
        owners = as_markdown(dossier(made, VARIANTS, account=account))
        assert f"As of {today()} (UTC): The ledger (account 1)" in owners.replace("\\", "")
    report.write(made, tmp_path / "outside.html")
    assert "As of" not in (tmp_path / "outside.html").read_text()


def test_from_a_file_the_file_itself_is_to_be_checked(tmp_path: Path) -> None:
    released = veilog.release(VARIANTS, "laplace", epsilon=1, activities=list(VARIANTS.labels), depth=2)
    released.save(tmp_path / "release.xes")
    told = told_by_file(veilog.read(tmp_path / "release.xes"))
    assert "open: The file is as it was written." in said(decided(told, released.variants.cases))


def test_what_a_person_with_several_cases_loses_is_never_less(tmp_path: Path) -> None:
    guarantee = released_at("0.5").guarantee
    words = [STRENGTHS.index(of_person(guarantee, n, 100)) for n in (1, 2, 5, 20, 1000)]
    assert words == sorted(words) and words[-1] == 4


def test_figures_are_powers_and_do_not_break() -> None:
    assert [figure(x) for x in (1e-6, 2.5e-7, 1e-4, 1, 2.7e43)] == ["10⁻⁶", "2.5·10⁻⁷", "0.0001", "1", "2.7·10⁴³"]
    assert figure(1.0000001e-6) == "1.00001·10⁻⁶"  # rounded up
    assert tied("of 34 % and a %; ε = 1") == "of 34\u202f% and a %; ε\u202f=\u202f1"
