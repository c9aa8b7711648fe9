"""Adversaries of conditions are caught where a condition fails, and else held off."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import veilog
from veilog.audits import twin_curator
from veilog.audits.attacks import ALPHABET, LONGEST, MANY_CASES, Attempt, attempts
from veilog.audits.blackbox import audit
from veilog.audits.bounds import AuditResult
from veilog.logs.variants import Variants
from veilog.privacy.domain import PRIVATELY, Domain

SURE = 1 - 1e-8
LABEL, SLOW, PERSON_20 = "a case with a label of its own", "a case of very many events", "a person with 20 cases"


def some(*names: str, cases: int = 1, whole: bool = False) -> list[Attempt]:
    found = [attempt for attempt in attempts(whole, cases) if attempt.attack in names]
    assert len(found) == len(names)
    return found


def audited(method: str, pairs: list[Attempt], **more: Any) -> AuditResult:
    given: dict[str, Any] = {"epsilon": "0.5", "runs": 310, "confidence": SURE, "seed": 1, "processes": 1}
    return audit(method, pairs=pairs, **given | more)


# A label of its own ---------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["sapa", "df-laplace"])
def test_a_label_of_its_own_is_caught_where_the_labels_are_those_of_the_log(method: str) -> None:
    found = audited(method, some(LABEL), activities="log")
    assert found.derived_epsilon == 0.5 and [c.code for c in found.conditions] == ["activities-from-log"]
    assert found.breaks == "activities-from-log"
    assert found.audited_epsilon > 0.5
    (verdict,) = found.verdicts
    assert verdict.code == "audit-beyond-condition-more"
    assert (verdict.values["condition"], verdict.values["claim"]) == ("activities-from-log", 0.5)
    told = found.to_json()
    assert told["breaks"] == "activities-from-log" and told["conditions"][0]["code"] == "activities-from-log"  # type: ignore[index]


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["sapa", "df-laplace", "laplace", "sacofa"])
def test_a_label_of_its_own_is_not_seen_where_the_labels_are_declared(method: str) -> None:
    found = audited(method, some(LABEL))
    assert found.conditions == () and found.breaks is None
    assert found.audited_epsilon <= 0.5 and [v.code for v in found.verdicts] == ["audit-contradicts-nothing"]


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["sapa", "laplace"])
def test_a_label_of_its_own_is_not_seen_where_labels_are_found_privately(method: str) -> None:
    """A private search for labels (epsilon 3, a large log) hides one case's own."""

    def five(log: Any) -> Variants:
        return Variants.from_dict({trace: 5 * n if n > 1 else n for trace, n in log.to_dict().items()})

    (own,) = some(LABEL)
    pair = replace(own, without=five(own.without), with_=five(own.with_))
    released = veilog.release(pair.with_, method, epsilon=3, delta="1e-3", domain=Domain(PRIVATELY, LONGEST))
    assert released.variants.cases > 0
    found = audited(method, [pair], epsilon=3, delta="1e-3", activities="privately", confidence=0.99)
    assert found.conditions == () and found.audited_epsilon < 2, "nothing near the claim: the label does not show"


@pytest.mark.nightly
def test_what_is_beyond_the_guarantee_is_proved_apart_from_what_is_within() -> None:
    found = audited("sapa", some("a canary variant", LABEL, PERSON_20), activities="log", confidence=0.99)
    assert found.breaks is None and found.audited_epsilon <= 0.5
    assert [b.breaks for b in found.beyond] == ["activities-from-log", "unit"]
    assert found.beyond[0].audited_epsilon > 0.5
    within, condition, unit = found.verdicts
    assert within.code == "audit-contradicts-nothing-where-conditions-hold"
    assert condition.code == "audit-beyond-condition-more" and condition.values["condition"] == "activities-from-log"
    assert unit.code == "audit-beyond-unit" and unit.values["cases"] == 20
    assert [b["attack"] for b in found.to_json()["beyond"]] == [LABEL, PERSON_20]  # type: ignore[attr-defined]
    assert [attack for attack, _ in found.tried] == ["a canary variant", LABEL, PERSON_20]


@pytest.mark.nightly
def test_a_label_of_ones_own_log_breaks_the_condition_too() -> None:
    log = Variants.from_dict({tuple("abc"): 50, tuple("ab"): 30, tuple("az"): 1})
    found = audit(
        "sapa", epsilon="0.5", log=log, domain=Domain("log", 3), runs=400, seed=1, processes=1, confidence=0.9
    )
    assert [b.breaks for b in found.beyond] == ["activities-from-log"]
    assert found.beyond[0].audited_epsilon > 0.5


# A person with many cases ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_person_with_20_cases_is_attacked_in_every_audit() -> None:
    names = [attempt.attack for attempt in attempts(False)]
    assert {LABEL, SLOW, PERSON_20} <= set(names)
    assert {attempt.cases for attempt in attempts(True, 30)} == {30}
    assert [a.cases for a in attempts(True, 5) if a.attack == PERSON_20] == [MANY_CASES]


@pytest.mark.nightly
def test_who_has_more_cases_than_nobody_has_is_caught() -> None:
    near = some("a canary variant", PERSON_20, cases=2)
    found = audited("travas", near, epsilon=1, delta="1e-3", unit="person", max_cases=2, confidence=0.999)
    assert found.breaks is None and found.person_cases == 2 and found.audited_epsilon <= 1
    assert [c.code for c in found.conditions] == ["cases-per-person-bounded"]
    (beyond,) = found.beyond
    assert (beyond.breaks, beyond.cases) == ("cases-per-person-bounded", 20)
    assert beyond.audited_epsilon > 1 and found.verdicts[1].values["condition"] == "cases-per-person-bounded"


@pytest.mark.nightly
def test_who_has_more_cases_than_count_is_protected_where_a_column_tells_the_persons() -> None:
    pairs = some("a canary variant", PERSON_20, cases=8, whole=True)
    found = audited("travas", pairs, epsilon=1, delta="1e-3", unit="case:person", max_cases=4, person_cases=8)
    assert found.beyond == () and found.breaks is None and found.audited_epsilon <= 1


# A slow case ----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_slow_case_shows_in_nothing_that_is_published() -> None:
    pairs = some(SLOW)
    assert {score.what for score in pairs[0].scores} == {"seconds told", "characters told"}
    released = veilog.release(pairs[0].with_, "travas", epsilon=1, delta="1e-3", domain=Domain(ALPHABET, LONGEST))
    assert pairs[0].scores[0].of(released) == -1 and released.owner_only.seconds > 0
    found = audited("travas", pairs, epsilon=1, delta="1e-3")
    assert found.conditions == () and found.audited_epsilon <= 1


@pytest.mark.nightly
def test_a_slow_case_is_caught_where_seconds_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A published time of a release, as once, reveals a slow case.

    A clock that counts the events of the log makes the time depend on it.
    """
    honest = veilog.Release.to_json
    pair = some(SLOW)[0]
    events = {"now": 0}

    run = twin_curator.run_plan

    def run_timed(planned: Any, log: Any, **named: Any) -> Any:
        events["now"] = log.events
        return run(planned, log, **named)

    def telling(self: veilog.Release) -> dict[str, object]:
        return honest(self) | {"guarantee": {"seconds": events["now"] * 1e-6}}

    monkeypatch.setattr(twin_curator, "run_plan", run_timed)
    monkeypatch.setattr(veilog.Release, "to_json", telling)
    found = audited("travas", [pair], epsilon=1, delta="1e-3")
    assert found.score == "seconds told" and found.audited_epsilon > 1
    assert found.verdicts[0].code == "audit-contradicts-derived"


@pytest.mark.nightly
def test_a_slow_case_breaks_the_condition_on_the_length() -> None:
    domain = Domain(ALPHABET, "log")
    found = audited("laplace", some("a canary variant", SLOW), domain=domain, runs=100, epsilon="0.2", confidence=0.9)
    assert [c.code for c in found.conditions] == ["length-from-log"]
    assert [b.breaks for b in found.beyond] == ["length-from-log"]


# Scripts --------------------------------------------------------------------------------------------------------------

SCRIPT = """
import veilog
print("begins")
found = veilog.audit("travas", epsilon=1, delta="1e-3", runs=120, seed=1{more})
print(found.runs)
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text)
    return subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_a_plain_script_is_run_once(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT.format(more=""))
    assert (done.returncode, done.stdout.split()) == (0, ["begins", "120"]), done.stderr


@pytest.mark.nightly
def test_a_plain_script_that_wants_processes_is_told_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path, SCRIPT.format(more=", processes=2"))
    assert done.stdout.split() == ["begins"]
    assert "ParameterError" in done.stderr and 'if __name__ == "__main__":' in done.stderr


@pytest.mark.nightly
def test_a_script_with_a_guard_gets_its_processes(tmp_path: Path) -> None:
    inside = SCRIPT.format(more=", processes=2").strip().replace("\n", "\n    ")
    done = run(tmp_path, f'if __name__ == "__main__":\n    {inside}\n')
    assert (done.returncode, done.stdout.split()) == (0, ["begins", "120"]), done.stderr
