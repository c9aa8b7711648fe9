"""Every released case obeys the rules, for all methods, with their remarks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from ruled import ATTRIBUTES, DECLARED, RULES, breaking, ruled_hospital

import veilog
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods import METHODS
from veilog.releasing.prior import PublicPrior
from veilog.releasing.request import ReleaseRequest, plan
from veilog.rules import checks
from veilog.rules.rules import ReleaseRules

LOG = ruled_hospital(150, seed=1)
FLOW = [rule for rule in RULES if isinstance(rule, dict) and not rule.keys() & {"attribute", "from"}]
WHOLE: dict[str, Any] = {"times": 0.3, "attributes": ATTRIBUTES, "attributes_share": 0.3}
USUAL: dict[str, Any] = {"epsilon": 3, "domain": DECLARED, "rules": RULES, "ledger": False}
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "evolve": {},
    "laplace": {},
    "sacofa": {},
    "df-laplace": {},
    "sapa": {},
    "dpim": {},
    "travas": {"delta": 0.01},
    "utravas": {"delta": 0.01},
    "travag": {"delta": 0.01, "critic_steps": 3, "free_generator_steps": 5},
}
OTHERS = [
    {"prior": hospital(300, seed=2)},
    {"delta": 0.01},
    {"delta": 0.01, "only_real": True},
    {"for_": "both"},
]


def made(method: str, seed: int, **more: Any) -> veilog.Release:
    return veilog.release(LOG, method, seed=seed, **USUAL | METHOD_SETTINGS[method] | more)


def test_all_methods_that_draw_cases_are_tried() -> None:
    obeying = {name for name, method in METHODS.items() if method.takes_epsilon and not method.full_log}
    assert obeying == set(METHOD_SETTINGS)


@pytest.mark.slow(but=2)
@pytest.mark.parametrize("method", METHOD_SETTINGS)
def test_every_released_case_obeys_ten_rules(method: str) -> None:
    assert breaking(LOG) == 0
    released = made(method, 1, **WHOLE)
    assert released.variants.cases > 0
    assert {*released.log.cases.column_names, *released.log.events.column_names} >= set(ATTRIBUTES)
    assert breaking(released.log) == breaking(released.variants) == 0


@pytest.mark.nightly
@pytest.mark.parametrize("method", METHOD_SETTINGS)
def test_no_seed_breaks_a_rule(method: str) -> None:
    for seed in range(100 if method == "evolve" else 10):
        released = made(method, seed, **WHOLE)
        assert breaking(released.log) == 0, seed


@pytest.mark.slow
@pytest.mark.parametrize("more", OTHERS, ids=lambda more: "-".join(more))
def test_evolve_obeys_however_it_starts(more: dict[str, Any]) -> None:
    released = made("evolve", 2, **more)
    assert released.variants.cases > 0
    assert breaking(released.variants) == 0
    for other in released.beside.values():
        assert breaking(other.variants) == 0


@pytest.mark.slow
def test_a_wide_log_and_little_epsilon_obey() -> None:
    names = [f"activity {i}" for i in range(120)]
    rng = np.random.default_rng(1)
    log = Variants.from_sequences([[names[i] for i in rng.integers(0, 120, 6)] for _ in range(300)])
    rules = [{"first": "activity 7"}, {"last": "activity 9"}, {"followed": ["activity 7", "activity 8"]}]
    released = veilog.release(log, "evolve", epsilon=0.5, activities=names, rules=rules, seed=1, ledger=False)
    assert released.variants.cases > 0
    assert breaking(released.variants, rules) == 0


@pytest.mark.slow
def test_rules_that_a_log_obeys_do_not_cost_similarity() -> None:
    """Rules that a log obeys cost at most 0.005 of similarity on average."""
    variants = LOG.variants

    def similarity(method: str, seed: int, rules: Any) -> float:
        found = relative_log_similarity(variants, made(method, seed, rules=rules).variants).value
        assert found is not None
        return found

    for method, seeds in (("evolve", 8), ("laplace", 24), ("sacofa", 24)):
        lost = [similarity(method, seed, None) - similarity(method, seed, FLOW) for seed in range(seeds)]
        assert np.mean(lost) <= 0.005, method


def test_a_rule_that_the_log_often_breaks_is_obeyed_and_the_owner_alone_is_told() -> None:
    log = Variants.from_dict({("a", "b", "c"): 700, ("b", "a", "c"): 200, ("b", "c"): 100})
    rules = [{"first": "a"}, {"last": "c"}]
    released = veilog.release(log, "evolve", epsilon=1, activities="log", rules=rules, seed=1, ledger=False)
    assert breaking(released.variants, rules) == 0
    (note,) = [note for note in released.owner_only.notes if note.code == "cases-break-rule"]
    assert note.values["cases"] == 300
    assert note.values["rule"].code == "rule-first"
    told = json.dumps([remark.to_json() for remark in released.remarks]) + str(released.log.metadata)
    assert "cases-break-rule" not in told and "300" not in told


def test_rules_are_told_with_the_release_and_a_condition_of_it() -> None:
    released = made("travas", 1)
    assert released.parameters["rules"] == RULES
    (remark,) = [remark for remark in released.remarks if remark.code == "rules-obeyed"]
    assert str(remark.values["rules"]).count("Registration") >= 2
    assert "rules-are-public" in [condition.code for condition in released.guarantee.conditions]
    assert "rules-are-public" in [condition.code for condition in plan("evolve", **options()).cost.conditions]


def options(**more: Any) -> Any:
    return {name: value for name, value in USUAL.items() if name != "ledger"} | more


@pytest.mark.parametrize(("least", "moved"), [("400 d", True), ("0 min", False)])
def test_times_that_rules_move_beyond_the_bound_of_durations_are_said(least: str, moved: bool) -> None:
    rule = {"from": "Registration", "to": "Triage", "at_least": least}
    released = made("evolve", 1, rules=[rule], times=0.3)
    assert ("times-moved-by-rules" in {remark.code for remark in released.remarks}) == moved


def test_a_request_with_rules_goes_through_json(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": RULES}))
    for rules, shown in ((RULES, "rules.json"), (path, str(path))):
        request = plan("evolve", **options(rules=rules))
        again = ReleaseRequest.from_json(json.loads(json.dumps(request.to_json())))
        assert again.to_json() == request.to_json()
        assert f"--rules {shown}" in request.command()


def test_what_cannot_obey_refuses_before_anything_is_asked() -> None:
    for method, more in (("pripel", {}), ("libra", {}), ("tlkc", {"epsilon": None, "as_published": True})):
        with refused(ParameterError, "method-without-rules", name=method):
            plan(method, **options(**more))
    with refused(ParameterError, "method-without-rules"):
        plan("evolve", **options(as_published=True))
    with refused(ParameterError, "rules-activities-privately"):
        plan("evolve", epsilon=1, delta=0.01, activities="privately", rules=FLOW)
    with refused(ParameterError, "rules-contradict", numbers="1, 2"):
        plan("evolve", **options(rules=[{"first": "Triage"}, {"first": "Death"}]))


def test_what_the_log_has_not_is_refused_before_anything_is_asked() -> None:
    with refused(ParameterError, "rule-activity-unknown", number=1, name="Arrival"):
        veilog.release(LOG, "evolve", epsilon=1, activities="log", rules=[{"first": "Arrival"}], ledger=False)
    for name in ("doses", "time:timestamp", "concept:name"):
        with refused(ParameterError, "rule-attribute-unknown", number=1, name=name):
            veilog.release(LOG, "travas", **USUAL | {"delta": 0.1, "rules": [{"attribute": f"{name} != 1"}]})


def test_a_prior_that_breaks_the_rules_is_not_used() -> None:
    prior = Variants.from_dict({("Triage", "Discharge"): 10})
    released = made("evolve", 1, prior=prior)
    assert "prior-breaks-rules" in [remark.code for remark in released.remarks]
    assert PublicPrior.of(prior) is not None
    assert breaking(released.variants) == 0


def test_real_variants_are_left_out_and_not_repaired() -> None:
    released = made("travas", 1)
    assert {*released.variants.sequences} <= {*LOG.variants.sequences}
    rules = [{"activity": "ECG", "at_most": 0}]
    fewer = veilog.release(LOG, "travas", **USUAL | {"delta": 0.01, "rules": rules, "seed": 1})
    assert {*fewer.variants.sequences} < {*released.variants.sequences}


def test_repaired_cases_stay_as_many() -> None:
    rules = ReleaseRules.of([{"last": "c"}, {"activity": "b", "at_most": 1}])
    assert rules is not None
    variants = Variants.from_dict({("a", "b", "b"): 3, ("a", "b", "c"): 4, (): 2})
    assert rules.repaired(variants).to_dict() == {("a", "b", "c"): 7, ("c",): 2}
    assert rules.repaired(variants, 2).cases == 9
    assert rules.only(variants).to_dict() == {("a", "b", "c"): 4}
    assert rules.preferred(variants) == rules.only(variants)
    assert rules.preferred(rules.only(variants).with_counts([0])).cases == 0


def test_rules_that_were_not_settled_are_obeyed_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_STEPS", 0)
    released = made("evolve", 1)
    assert breaking(released.variants) == 0
    assert "rules-perhaps-contradict" in [remark.code for remark in released.remarks]
    monkeypatch.undo()
    assert "rules-perhaps-contradict" not in [remark.code for remark in made("evolve", 1).remarks]


def test_where_no_case_obeys_nothing_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """No release breaks a rule, also where it shows only then that none can be obeyed."""
    monkeypatch.setattr(checks, "MOST_STEPS", 0)
    never = [{"activity": "Registration", "at_most": 0}, {"first": "Registration"}]
    with refused(ParameterError, "rules-no-case-found"):
        made("evolve", 1, rules=never)
    assert not made("laplace", 1, rules=never).variants.cases
