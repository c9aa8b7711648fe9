"""The first screen: level, protected persons, epsilon spent, and checks."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import veilog
from veilog import Variants, report
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.privacy.account.guarantee import STRENGTHS, Code, strength_of
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.checks import VERDICTS, VERIFIED_BY, Check, Unverified, Verified, checks_of
from veilog.report.decision import MARKS, Decision, decision_facts, owner_side, person_sentence
from veilog.report.dossier import as_markdown, dossier
from veilog.report.facts import ledger_status, today
from veilog.report.release_facts import facts_of_file, facts_of_release
from veilog.report.words import bind_numbers, figure

LOG = hospital(300, seed=1)
VARIANTS = LOG.variants
ROOT = Path(__file__).parents[2]


def decision_of(released: veilog.Release, original: veilog.EventLog | Variants | None = None) -> Decision:
    owner = None if original is None else owner_side(original, ledger_status(released))
    return decision_facts(facts_of_release(released), released.variants.cases, owner)


def states(decision: Decision) -> dict[str, str]:
    """Return the state of each check by its code."""
    return {check.code: check.state for check in decision.checks}


def why(decision: Decision, code: str) -> str:
    return next(check.why for check in decision.checks if check.code == code)


def said(decision: Decision) -> str:
    checks = [f"{check.state}: {check.asks} {check.why}" for check in decision.checks]
    return "\n".join(
        [decision.headline, decision.whom, decision.answer, *decision.reasons, *checks, *decision.cautions]
    )


def released_at(epsilon: str, log: Variants = VARIANTS, delta: str = "1e-6") -> veilog.Release:
    return veilog.release(log, "travas", epsilon=epsilon, delta=delta, allow_no_protection=True)


# Ticks ----------------------------------------------------------------------------------------------------------------


def test_each_tick_and_each_verdict_names_a_function_that_there_is() -> None:
    assert set(get_args(Verified)) == set(VERIFIED_BY)
    for name in (*VERIFIED_BY.values(), *(function for _, function in VERDICTS.values())):
        module, _, path = name.partition(":")
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found), name


@pytest.mark.parametrize("code", ["activities-declared", "unit", "recipient", "releases-elsewhere", *get_args(Code)])
def test_nothing_is_ticked_that_no_function_verifies(code: str) -> None:
    with pytest.raises(Unverified):
        Check(code, "checked", Message("it-holds"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_ticks_are_made_in_one_place() -> None:
    """Ticks are made in one place, because no other place verifies them."""
    ticks = re.compile("[☑✓✔✅]|&#(?:x2611|9745|10003);")
    sources = [path for kind in ("py", "html", "jinja") for path in (ROOT / "src" / "veilog").rglob(f"*.{kind}")]
    found = {path.name for path in sources if ticks.search(path.read_text())}
    assert found == {"decision.py", "answer.jinja"}, "the mark, and what it stands for in a dossier"
    assert MARKS["checked"][0] == "☑" and MARKS["to-confirm"][0] == "☐"


def test_json_has_what_was_checked_and_what_is_to_be_confirmed() -> None:
    declared = veilog.release(VARIANTS, "laplace", epsilon=1, activities=list(VARIANTS.labels), depth=2)
    found = declared.to_json()
    lists = {name: [check["code"] for check in found[name]] for name in ("checked", "to_confirm")}  # type: ignore[attr-defined]
    assert lists == {
        "checked": ["guarantee-derived"],
        "to_confirm": ["activities-declared", "unit", "releases-elsewhere", "recipient"],
    }
    with_noise = released_at("1").to_json()["checked"]
    assert [check["code"] for check in with_noise] == ["guarantee-derived", "activities-with-noise"]  # type: ignore[attr-defined]
    from_log = veilog.release(VARIANTS, "laplace", epsilon=1, activities="log", depth=2).to_json()
    assert "activities-from-log" in [check["code"] for check in from_log["to_confirm"]]  # type: ignore[attr-defined]
    seeded = veilog.release(VARIANTS, "laplace", epsilon=1, activities="log", depth=2, seed=1).to_json()
    assert (seeded["checked"], seeded["to_confirm"]) == ([], [])


def test_a_list_of_activities_is_never_ticked() -> None:
    """A list of activities is never ticked, as it may be copied from the log."""
    copied = veilog.release(VARIANTS, "laplace", epsilon=1, activities=list(VARIANTS.labels), depth=2)
    assert states(decision_of(copied, VARIANTS))["activities-declared"] == "to-confirm"
    assert "activities-with-noise" not in states(decision_of(copied, VARIANTS))


def test_that_persons_are_bounded_is_ticked_and_that_their_column_is_right_is_not(tmp_path: Path) -> None:
    log = log_of_persons(tmp_path)
    bounded = veilog.release(log, "travas", epsilon=1, delta="1e-6", unit="Patient", max_cases=2)
    found = {check.code: check.state for check in checks_of(bounded.guarantee, bounded.activities)}
    assert (found["cases-bounded"], found["unit"]) == ("checked", "to-confirm")
    said_so = veilog.release(log, "travas", epsilon=1, delta="1e-6", unit="person", max_cases=2)
    found = {check.code: check.state for check in checks_of(said_so.guarantee, said_so.activities)}
    assert "cases-bounded" not in found and found["cases-per-person-bounded"] == "to-confirm"


_SEND = r"(?:send|sent|share|shared|publish|published|give(?:n)? (?:it )?(?:away|to))"
PERMISSIONS = {
    "en": re.compile(
        rf"\b(?:may|must|can be|should)(?: not)?(?: then)?(?: be)? {_SEND}\b|\b(?:do not|allowed to|free to) {_SEND}\b"
        r"|\bmay (?:go where|leave)\b|\bgive away\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:Sie dürfen|Sie darf|darf (?:\w+ )*(?:gesendet|geteilt|veröffentlicht|weitergegeben))\b", re.I
    ),
    "fr": re.compile(r"\bvous pouvez (?:\w+ )?(?:envoy|partag|publi|transm|communiqu)", re.I),
    "nl": re.compile(
        r"\b(?:u mag|mag|mogen) (?:\w+ )*(?:verstuurd|verzonden|versturen|delen|gedeeld|gepubliceerd)\b", re.I
    ),
}
"""Phrases of permission to send or publish, which the data's owner decides alone."""


def texts_of(path: Path) -> list[str]:
    """Return the texts of a source that a user can see, without its docstrings."""
    if path.suffix != ".py":
        return [path.read_text()]
    nodes = list(ast.walk(ast.parse(path.read_text())))
    described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = (node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [str(node.value) for node in strings if id(node) not in described]


@pytest.mark.nightly
def test_no_text_gives_a_permission() -> None:
    """No page, report, dossier, command or doc permits sending or publishing."""
    package = ROOT / "src" / "veilog"
    sources = [path for kind in ("py", "html", "jinja", "js") for path in package.rglob(f"*.{kind}")]
    sources.append(ROOT / "README.md")
    sources += [path for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts]
    found = [
        (path.name, match.group())
        for path in sources
        for text in texts_of(path)
        for match in PERMISSIONS["en"].finditer(" ".join(text.split()))
    ]
    assert found == []
    assert PERMISSIONS["en"].search("You may send it to anybody") and PERMISSIONS["en"].search("Do not send it.")


@pytest.mark.slow
def test_no_translation_gives_a_permission() -> None:
    """No translation of a current sentence gives a permission."""
    package = ROOT / "src" / "veilog"
    sources = [path for suffix in ("py", "html") for path in package.rglob(f"*.{suffix}")]
    said_now = "\n".join(text for path in sources for text in texts_of(path))
    found = []
    for language in ("de", "fr", "nl"):
        entries = re.sub(r'"\n"', "", (package / "_language" / f"{language}.po").read_text()).split("\n\n")
        for entry in entries:
            asked = re.search(r'^msgid ""?"?(.+)"$', entry, re.MULTILINE)
            if asked and asked[1].replace('\\"', '"') in said_now:
                found += [match.group() for match in PERMISSIONS[language].finditer(entry.partition("msgstr")[2])]
    assert found == []


# The first screen -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "tone", "word"),
    [("0.3", "good", "strong"), ("1", "good", "good"), ("2", "warn", "moderate"), ("3", "bad", "weak")],
)
def test_who_receives_it_is_to_be_confirmed_at_every_level(epsilon: str, tone: str, word: str) -> None:
    decision = decision_of(replace(released_at(epsilon), variants=VARIANTS))
    assert (decision.tone, decision.strength) == (tone, word)
    assert states(decision)["recipient"] == "to-confirm"
    assert f"ε = {epsilon}" in decision.answer, "what was spent"
    assert decision.whom == str(Message("protects-one-case"))


def test_at_epsilon_50_it_is_to_be_treated_as_the_original() -> None:
    decision = decision_of(replace(released_at("50"), variants=VARIANTS))
    assert decision.tone == "bad" and decision.checks == () and decision.strength == STRENGTHS[-1]
    assert "50" not in decision.answer, "and not of what was spent"


def test_an_empty_release_has_nothing_to_confirm() -> None:
    empty = replace(released_at("1"), variants=Variants.from_dict({}))
    decision = decision_of(empty, VARIANTS)
    assert decision.checks == () and len(decision.cautions) == 1
    assert decision.tone == "warn", "what protects nobody is not praised"


def test_staff_are_named_to_the_owner_by_their_column() -> None:
    inside, outside = decision_of(released_at("1"), LOG), decision_of(released_at("1"))
    assert any("org:resource" in caution for caution in inside.cautions)
    assert "org:resource" not in said(outside) and outside.whom == str(Message("protects-one-case"))


@pytest.mark.slow
def test_of_a_wide_log_the_names_that_occur_once_are_named_to_the_owner_alone() -> None:
    wide = Variants.from_dict({("arrive", "leave"): 400, **{("arrive", f"Dr. {i:03}"): 1 for i in range(300)}})
    released = veilog.release(wide, "laplace", epsilon=1, activities="log", depth=2, seed=None)
    inside, outside = said(decision_of(released, wide)), said(decision_of(released))
    assert states(decision_of(released, wide))["activities-from-log"] == "to-confirm"
    assert all(value in inside for value in (" 302,", "“Dr. 000”, “Dr. 001”", " 295 more"))
    assert "Dr." not in outside and "302" not in outside
    declared = veilog.release(wide, "laplace", epsilon=1, activities=["arrive", "leave"], depth=2)
    assert states(decision_of(declared, wide))["activities-declared"] == "to-confirm"


def test_of_a_log_of_one_case_the_release_is_called_noise() -> None:
    one = Variants.from_dict({("a", "b"): 1})
    released = veilog.release(one, "laplace", epsilon=1, activities=["a", "b"], depth=2)
    (caution,) = decision_of(released, one).cautions
    assert " 1 case" in caution
    assert (
        decision_of(released).cautions
        == decision_of(replace(released_at("1"), variants=VARIANTS), VARIANTS).cautions
        == ()
    )


def log_of_persons(folder: Path) -> veilog.EventLog:
    """Return forty patients with a case each, and one with twenty."""
    lines = ["case,activity,timestamp,Patient"]
    for case in range(60):
        who = "p0" if case < 20 else f"p{case}"
        lines += [f"{case},{a},2024-01-{1 + case % 28:02}T10:0{i}:00Z,{who}" for i, a in enumerate("ab")]
    (folder / "log.csv").write_text("\n".join(lines))
    return veilog.read(folder / "log.csv")


@pytest.mark.slow
def test_a_person_with_twenty_cases_stands_against_it_where_cases_are_protected(tmp_path: Path) -> None:
    log = log_of_persons(tmp_path)
    released = replace(veilog.release(log, "travas", epsilon=1, delta="1e-6"), variants=log.variants)
    decision = decision_of(released, log)
    against = why(decision, "unit")
    assert states(decision)["unit"] == "against"
    assert "--unit Patient --max-cases 2" in against and " 42 " in against
    assert "ε = 20:" in against and against.endswith(f" {person_sentence(released.guarantee, 20)}.")
    assert person_sentence(released.guarantee, 20) == STRENGTHS[-1]
    assert decision.tone == "warn"
    assert "Patient" not in said(decision_of(released))
    person = veilog.release(log, "travas", epsilon=1, delta="1e-6", unit="Patient", max_cases=20)
    found = states(decision_of(replace(person, variants=log.variants), log))
    assert (found["cases-bounded"], found["unit"]) == ("checked", "to-confirm")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "reason", "model"),
    [
        (
            lambda: veilog.release(LOG, "tlkc", as_published=True, k=5, l=2),
            "tlkc-exact-counts",
            ("k-anonymity (TLKC)",),
        ),
        (lambda: veilog.release(LOG, "travas", epsilon=1, delta="1e-4", seed=1), "noise-seeded", ()),
    ],
    ids=["as published", "seeded"],
)
def test_where_nothing_is_proven_it_says_no_and_why(
    release: Callable[[], veilog.Release], reason: str, model: tuple[str, ...]
) -> None:
    made = release()
    decision = decision_of(made, LOG)
    assert [why.code for why in made.guarantee.reasons] == [reason]
    assert decision.whom == str(Message("no-protection"))
    assert decision.reasons[0].lower() == f"{Message(reason)}.".lower()
    assert len(decision.reasons) == 1 + len(model) and all(name in decision.reasons[-1] for name in model)
    assert decision.checks == () and decision.tone == "bad"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilons", "state", "values"),
    [
        (("1",), "checked", ("(account 1)",)),
        (("0.5", "0.5"), "checked", (" 2,", "ε = 1 ", " good.")),
        (("3", "3"), "against", (" 2,", "ε = 6 ", f" {STRENGTHS[-1]}.")),
    ],
)
def test_the_ledger_says_whether_there_are_other_releases(
    epsilons: tuple[str, ...], state: str, values: tuple[str, ...], tmp_path: Path
) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    made = [
        veilog.release(VARIANTS, "laplace", epsilon=e, activities=list(VARIANTS.labels), depth=2, ledger=ledger)
        for e in epsilons
    ]
    decision = decision_of(made[-1], VARIANTS)
    assert states(decision)["other-releases"] == state
    assert all(value in why(decision, "other-releases") for value in values)
    assert states(decision)["releases-elsewhere"] == "to-confirm", "which no ledger can know"
    assert "other-releases" not in states(decision_of(made[-1]))
    (tmp_path / "log.ledger").unlink()
    assert states(decision_of(made[-1], VARIANTS))["other-releases"] == "to-confirm"


def released_in(ledger: veilog.Ledger, epsilon: str, log: Variants = VARIANTS) -> veilog.Release:
    return veilog.release(log, "laplace", epsilon=epsilon, activities=list(log.labels), depth=2, ledger=ledger)


def test_of_variants_it_says_nothing_about_columns() -> None:
    made = released_at("1")
    of_variants, of_log = (decision_of(made, log) for log in (VARIANTS, LOG))
    assert states(of_variants)["unit"] == states(of_log)["unit"] == "to-confirm"
    assert why(of_log, "unit") != why(of_variants, "unit") == why(decision_of(made), "unit")


@pytest.mark.nightly
def test_where_there_are_other_accounts_nobody_knows_whether_it_is_the_only_release(tmp_path: Path) -> None:
    """With other accounts a ledger cannot know if these people have other releases."""
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True, name="klinik-03.csv")
    released_in(ledger, "1")
    grown = replace(ledger, name="klinik-04.csv")
    made = released_in(grown, "0.5", hospital(301, seed=1).variants)
    decision = decision_of(made, VARIANTS)
    only = next(check for check in decision.checks if check.code == "other-releases")
    assert (only.state, only.asks) == ("checked", str(Message("check-other-releases-none")))
    assert "(account 2)" in only.why and " (klinik-03.csv)" in why(decision, "releases-elsewhere")
    for n in range(302, 305):
        released_in(replace(ledger, name=f"klinik-{n}.csv"), "0.5", hospital(n, seed=1).variants)
    ledger.set_budget(hospital(400, seed=1).variants, "1")  # an account without releases adds nothing
    named = " 4 other accounts (klinik-03.csv, klinik-302.csv, klinik-303.csv, …)"
    assert named in why(decision_of(made, VARIANTS), "releases-elsewhere")
    released_in(grown, "3.5", hospital(301, seed=1).variants)
    decision = decision_of(made, VARIANTS)
    assert "ε = 4 " in why(decision, "other-releases") and named in why(decision, "releases-elsewhere")
    without_name = decision_facts(facts_of_release(made), 10, owner_side(VARIANTS, ledger_status(made, named=False)))
    assert " 4 other accounts:" in why(without_name, "releases-elsewhere") and "klinik" not in said(without_name)


def test_a_ledger_that_does_not_have_the_release_does_not_vouch_for_it(tmp_path: Path) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    budgeted = ledger.set_budget(VARIANTS, "1")
    told = facts_of_release(released_at("1"))
    for account in (None, budgeted):
        decision = decision_facts(told, 10, owner_side(VARIANTS, LedgerStatus.of(account, ledger.show())))
        assert states(decision)["other-releases"] == "to-confirm"


@pytest.mark.nightly
def test_what_is_written_says_of_which_day_it_is(tmp_path: Path) -> None:
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    made = released_in(ledger, "1")
    for number, account in enumerate((None, ledger.account(VARIANTS))):
        report.write(made, tmp_path / f"{number}.html", VARIANTS, account=account)
        assert f"{today()} (UTC): " in (tmp_path / f"{number}.html").read_text()
        owners = as_markdown(dossier(made, VARIANTS, account=account))
        assert f"{today()} (UTC): " in owners
    report.write(made, tmp_path / "recipient-report.html")
    assert "(UTC): " not in (tmp_path / "recipient-report.html").read_text()


def test_from_a_file_the_file_itself_is_to_be_checked(tmp_path: Path) -> None:
    released = veilog.release(VARIANTS, "laplace", epsilon=1, activities=list(VARIANTS.labels), depth=2)
    released.save(tmp_path / "release.xes")
    told = facts_of_file(veilog.read(tmp_path / "release.xes"))
    found = states(decision_facts(told, released.variants.cases))
    assert found["file-unchanged"] == "to-confirm" and "checked" not in found.values()


def test_what_a_person_with_several_cases_loses_is_never_less(tmp_path: Path) -> None:
    guarantee = released_at("0.5").guarantee
    words = [STRENGTHS.index(person_sentence(guarantee, n)) for n in (1, 2, 5, 20, 1000)]
    assert words == sorted(words) and words[-1] == 4


def test_figures_are_powers_and_do_not_break() -> None:
    assert [figure(x) for x in (1e-6, 2.5e-7, 1e-4, 1, 2.7e43)] == ["10⁻⁶", "2.5·10⁻⁷", "0.0001", "1", "2.7·10⁴³"]
    assert figure(1.0000001e-6) == "1.00001·10⁻⁶"  # rounded up
    assert bind_numbers("of 34 % and a %; ε = 1") == "of 34\u202f% and a %; ε\u202f=\u202f1"


# The level and the cases of the log -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [("0.4", "1e-4"), ("1", "8e-5"), ("1", "2e-4")])
def test_no_public_level_is_better_than_what_all_cases_give_without_its_limit(epsilon: str, delta: str) -> None:
    """No public level is better than that of all cases, without a stated limit.

    travas releases a tenth of 1,050 cases most of which are alone, and delta endangers all of them.
    """
    alone = {("a", f"{i // 30}", f"{i % 30}"): 1 for i in range(784)}
    log = Variants.from_dict({**alone, ("a", "b"): 60, **{("a", "b", f"{i}"): 2 for i in range(103)}})
    assert log.cases == 1_050
    released = veilog.release(log, "travas", epsilon=epsilon, delta=delta)
    g = released.guarantee
    real = strength_of(g.guessing_advantage, g.delta or 0.0, 1_050)
    assert released.variants.cases < 200 and real in ("moderate", "weak")
    assert STRENGTHS.index(g.strength) < STRENGTHS.index(real), "it was stated by what was released"
    assert g.holds_up_to is not None and g.holds_up_to < 1_050
    found = released.to_json()["guarantee"]
    assert (found["level"], found["level_holds_up_to_cases"]) == (g.strength, g.holds_up_to)  # type: ignore[index]
    limit = f"{g.holds_up_to:,} case"
    for text in (g.in_words(), decision_of(released).headline, str(released._repr_html_())):
        assert limit in text
    assert decision_of(released, log).strength == real, "the owner sees the level of the log"
    assert real in [note.values["level"] for note in released.owner_only.notes if note.code == "cases-exposed"]
    assert not any("delta" in str(remark) for remark in released.remarks), (
        "nothing public is judged by what was released"
    )
