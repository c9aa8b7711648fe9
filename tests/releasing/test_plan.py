"""A plan is a parsed request: it refuses without data, and prints itself again."""

import datetime
import json
import shlex
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from surfaces import in_command

import veilog
from veilog.cli import application
from veilog.errors import BudgetError, InputError, ParameterError, UndeclaredError, VeilogError
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.privacy.account.budgets import parse_epsilon
from veilog.releasing.preview import guarantee_of
from veilog.releasing.refusals import protects_nobody

LOG = hospital(60, seed=3)
LABELS = tuple(LOG.variants.labels)
JANUARY = datetime.datetime(2024, 1, 1), datetime.datetime(2024, 2, 1, 12, 30)
PLANS: dict[str, dict[str, Any]] = {
    "evolve": {"epsilon": "0.5", "activities": LABELS, "rounds": 2, "for": "models"},
    "laplace": {"epsilon": 1, "activities": "log", "domain": None, "depth": 5, "consistency": False},
    "travas": {"epsilon": Fraction(1, 3), "delta": "1e-6", "unit": "patient", "max_cases": 2},
    "pripel": {"epsilon": 1, "activities": "log", "attribute_names": "age", "times_share": 0.2},
    "tlkc": {"k": 5, "sensitive": "a, b"},
    "sacofa": {"epsilon": 1, "activities": "log", "subset": "ward=A, or 'B'"},
    "amun": {"as_published": True, "guessing_advantage": 0.3, "seed": 4},
}


@pytest.mark.parametrize("method", PLANS)
def test_a_plan_is_json_both_ways(method: str) -> None:
    planned = veilog.plan(method, **PLANS[method])
    assert veilog.ReleaseRequest.from_json(json.loads(json.dumps(planned.to_json()))) == planned


def beyond() -> veilog.ReleaseRequest:
    """Return a plan with all that can be released beyond variants."""
    domain = veilog.Domain(LABELS, 30, {"ward": ("A 1", "B, 2"), "age": (-0.12345678, 1234567.5)})
    return veilog.plan(
        "evolve",
        epsilon="1",
        delta="1e-5",
        domain=domain,
        times="0.2",
        window=JANUARY,
        attributes=["ward", "age"],
        attributes_share=0.3,
        unit="person",
        max_cases=3,
        only_real=True,
    )


def test_times_attributes_and_domains_come_back_from_json() -> None:
    assert veilog.ReleaseRequest.from_json(json.loads(json.dumps(beyond().to_json()))) == beyond()


def named_alike() -> veilog.ReleaseRequest:
    """Return a plan in which a setting of the method and a public fact have one name."""
    return veilog.plan("evolve", epsilon=1, domain=veilog.Domain("log", 30), max_length=40)


def test_a_setting_is_not_taken_for_a_public_fact_of_the_same_name() -> None:
    again = veilog.ReleaseRequest.from_json(json.loads(json.dumps(named_alike().to_json())))
    assert again == named_alike()
    assert (again.declared.max_length, again.settings.to_json()["max_length"]) == (30, 40)


def read_by_the_command(command: str) -> veilog.ReleaseRequest:
    """Return the plan that the command line makes of a command."""
    from veilog.cli.shared.options import pairs
    from veilog.cli.shared.requests import UNDECIDED

    words = shlex.split(command)
    assert words[:2] == ["veilog", "release"]
    _, bound, _ = application(whole=True).parse_args(words[1:], print_error=False, exit_on_error=False)
    given = bound.arguments
    asked = given.get("asked", UNDECIDED)
    return asked.request(given["method"], pairs(given.get("p", ()), "-p"))


def plan_called(name: str) -> veilog.ReleaseRequest:
    made = {"beyond": beyond, "named alike": named_alike}
    return made[name]() if name in made else veilog.plan(name, **PLANS[name])


@pytest.mark.slow
@pytest.mark.parametrize("method", [*PLANS, "beyond", "named alike"])
def test_the_command_of_a_plan_makes_the_same_plan(method: str) -> None:
    planned = plan_called(method)
    options = [("--on", "missing-case=drop"), ("--on", "empty-trace=keep")]
    command = planned.command("my log.csv", "out.xes", options)
    assert read_by_the_command(command) == planned
    assert "--on missing-case=drop --on empty-trace=keep" in command


@pytest.mark.parametrize("method", [*PLANS, "beyond", "named alike"])
def test_the_python_of_a_plan_makes_the_same_plan(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan_called(method)
    made: list[veilog.ReleaseRequest] = []

    class Saved:
        def save(self, target: str) -> None:
            assert target == "out.xes"

    def released(log: str, name: str, **arguments: Any) -> Saved:
        made.append(veilog.plan(name, **arguments))
        return Saved()

    monkeypatch.setattr(veilog, "read", lambda path, **how: path)
    monkeypatch.setattr(veilog, "release", released)
    exec(planned.python("my log.csv", "out.xes", {"case": "id"}), {})
    assert made == [planned]


@pytest.mark.nightly
@given(
    epsilon=st.fractions(Fraction(1, 1000), Fraction(389, 100), max_denominator=1000),
    depth=st.none() | st.integers(1, 50),
    rest=st.sampled_from(["stop", "drop", "share"]),
)
def test_no_number_changes_on_its_way(epsilon: Fraction, depth: int | None, rest: str) -> None:
    planned = veilog.plan("laplace", epsilon=epsilon, activities="log", depth=depth, rest=rest)
    again = veilog.ReleaseRequest.from_json(planned.to_json())
    assert again == planned and again.epsilon == epsilon
    assert read_by_the_command(planned.command()).epsilon == epsilon


def test_a_plan_refuses_what_needs_no_data() -> None:
    for method, arguments, words in (
        ("travas", {"epsilon": 1}, "method-delta-missing"),
        ("evolve", {}, "method-epsilon-missing"),
        ("evolve", {"epsilon": "0,5"}, "budget-not-number"),
        ("evolve", {"eps": 1}, "method-parameter-unknown"),
        ("evolve", {"epsilon": 1, "round": 2}, "method-parameter-unknown"),
        ("evolve", {"epsilon": 1, "for": "modles"}, "setting-value-not-allowed"),
        ("evolve", {"epsilon": 1, "window": JANUARY}, "window-without-times-share"),
        ("tlkc", {"k": 2, "epsilon": 1}, "method-epsilon-not-taken"),
        ("tlkc", {"k": 2, "delta": 0.1}, "method-epsilon-not-taken"),
        ("df-laplace", {"epsilon": 1, "delta": "1e-6"}, "method-delta-not-needed"),
        ("laplace", {"epsilon": 1, "depth": 0}, "setting-too-small"),
        ("laplace", {"epsilon": 1, "nonsense": 0}, "method-parameter-unknown"),
        ("laplace", {"epsilon": 1, "times": 0.3, "as_published": True}, "extras-not-certified"),
        ("evolve", {"epsilon": 1, "times": 0.6, "attributes": ["a"], "attributes_share": 0.5}, "shares-leave-nothing"),
        ("evolve", {"epsilon": 1, "unit": "patient"}, "unit-without-bound"),
        ("evolve", {"epsilon": 1, "seed": -1}, "disclosure-seed-invalid"),
        ("travas", {"epsilon": 1, "delta": 0.1, "activities": "privately"}, "activities-privately-unneeded"),
        ("amun", {}, "method-not-certified"),
        ("trevas", {}, "method-unknown"),
    ):
        with refused(ParameterError, words):
            veilog.plan(method, **arguments)


def test_a_share_may_be_a_percentage() -> None:
    plan = veilog.plan("evolve", epsilon=1, times="30%", activities=["a"])
    assert plan.wanted.times == veilog.plan("evolve", epsilon=1, times="0.3", activities=["a"]).wanted.times


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("laplace", {"epsilon": "3.9"}),
        ("laplace", {"epsilon": 6}),
        ("laplace", {"guessing_advantage": "0.751"}),
        ("laplace", {"epsilon": "3.9", "unit": "patient", "max_cases": 30}),
        ("travas", {"epsilon": "3.89", "delta": "0.01"}),
    ],
)
def test_a_level_of_none_in_practice_is_asked_for_in_words(method: str, asked: dict[str, Any]) -> None:
    """A plan asks for consent to a level of none by the budget alone, without a log."""
    with pytest.raises(ParameterError) as caught:
        veilog.plan(method, **asked)
    assert caught.value.parameter == "epsilon"
    planned = veilog.plan(method, **asked, allow_no_protection=True)
    assert protects_nobody(planned.epsilon, planned.delta)
    assert planned.delta or planned.cost.strength == "none in practice"
    assert veilog.ReleaseRequest.from_json(planned.to_json()) == planned
    assert "--allow-no-protection" in planned.command()


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("laplace", {"epsilon": "3.89"}),
        ("laplace", {"guessing_advantage": "0.75"}),
        ("laplace", {"epsilon": "3.89", "unit": "patient", "max_cases": 30}),
        ("travas", {"epsilon": "3.8", "delta": "1e-6"}),
    ],
)
def test_a_weak_level_is_not(method: str, asked: dict[str, Any]) -> None:
    planned = veilog.plan(method, **asked)
    assert not protects_nobody(planned.epsilon, planned.delta)


def test_what_nobody_said_is_refused_when_a_log_is_given_and_not_before() -> None:
    planned = veilog.plan("laplace", epsilon=1)
    assert planned.undeclared == ["activities", "max_length"]
    with pytest.raises(UndeclaredError):
        planned.check(LOG)
    with pytest.raises(UndeclaredError):
        planned.run(LOG)
    said = planned.declaring(veilog.Domain("log", "log"))
    assert said.undeclared == [] and said.run(LOG).guarantee.proven


def test_a_plan_asks_for_events_where_it_needs_them() -> None:
    for method, more, code in (
        ("evolve", {"times": 0.3}, "question-extras-of-variants"),
        ("evolve", {"unit": "patient", "max_cases": 2}, "unit-of-variants"),
        ("pripel", {}, "variants-without-times"),
    ):
        planned = veilog.plan(method, epsilon=1, activities="log", **more)
        assert planned.needs_events
        with refused(ParameterError, code):
            planned.check(LOG.variants)
    assert not veilog.plan("evolve", epsilon=1, activities="log").needs_events


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evolve", "laplace", "travas", "sapa"])
def test_the_cost_is_known_before_and_is_what_the_release_claims(method: str) -> None:
    delta = "1e-3" if veilog.METHODS[method].needs_delta else 0
    planned = veilog.plan(method, epsilon="0.7", delta=delta, domain=veilog.Domain("log", "log"))
    told, done = planned.cost, planned.run(LOG).guarantee
    assert (told.proven, told.epsilon, told.delta) == (True, done.epsilon, done.delta)
    assert told.conditions == done.conditions and told.charges


@pytest.mark.slow
def test_the_cost_has_the_conditions_of_the_release_and_not_of_the_dry_run() -> None:
    planned = veilog.plan("evolve", epsilon=1, unit="patient", max_cases=3)
    assert planned.undeclared == ["activities"] and planned.cost.conditions == ()
    said = planned.declaring(veilog.Domain("log"))
    assert [condition.code for condition in said.cost.conditions] == ["activities-from-log"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("laplace", {"attributes": ["urgency"]}),
        ("laplace", {"subset": "urgency=2"}),
        ("laplace", {"times": "0.3", "processing": True}),
        ("pripel", {"attribute_names": "urgency"}),
    ],
)
def test_that_attributes_are_looked_at_is_a_condition_of_the_cost(method: str, asked: dict[str, Any]) -> None:
    log = draw_starts(hospital(60, seed=3))
    declared = veilog.Domain(log.variants.labels, 20, {"urgency": ("1", "2", "3")})
    planned = veilog.plan(method, epsilon=3, delta="1e-3" if method == "pripel" else 0, domain=declared, **asked)
    told, done = planned.cost.conditions, planned.run(log).guarantee.conditions
    stays = ["cases-keep-their-subset"] if "subset" in asked else []
    assert [condition.code for condition in told] == [*stays, "columns-from-log"] and told == done


@pytest.mark.slow
def test_the_cost_of_labels_that_are_found_privately_is_in_it() -> None:
    planned = veilog.plan("evolve", epsilon=1, delta="1e-3", activities="privately")
    assert planned.cost.proven and planned.cost.charges[0].question == "labels"
    assert planned.cost.epsilon == 1.0


@pytest.mark.parametrize("times", [None, "0.3"])
def test_the_cost_of_attributes_is_in_it_and_leaves_so_much_less_for_the_rest(times: str | None) -> None:
    """The cost of a plan with attributes is that of the release."""
    declared = veilog.Domain("log", "log", {"age group": ("0-39", "40-79", "80+")})
    planned = veilog.plan("laplace", epsilon="0.8", domain=declared, attributes=["age group"], times=times, depth=3)
    told, done = planned.cost, planned.run(hospital(60, seed=3)).guarantee
    of_values = [sum(c.epsilon for c in found.charges if "values of" in str(c.purpose)) for found in (told, done)]
    assert of_values == [Fraction(1, 5), Fraction(1, 5)]
    of_paths = [{c.epsilon for c in found.charges if "prefixes of length" in str(c.purpose)} for found in (told, done)]
    assert of_paths[0] == of_paths[1]
    assert sum(c.epsilon for c in told.charges) <= Fraction(4, 5)
    assert told.proven and told.epsilon == done.epsilon == 0.8


def test_a_release_takes_a_plan(tmp_path: Any) -> None:
    planned = veilog.plan("laplace", epsilon=1, domain=veilog.Domain("log", "log"))
    again = veilog.release(LOG, planned.seeded(5))
    assert again.variants == veilog.release(LOG, "laplace", epsilon=1, seed=5, domain=planned.declared).variants
    ledger = veilog.Ledger.open(tmp_path / "a.ledger", create=True)
    ledger.set_budget(LOG, 1)
    assert planned.run(LOG, ledger=ledger).entry is not None
    with pytest.raises(BudgetError):
        planned.run(LOG, ledger=ledger)


def test_columns_that_a_log_does_not_have_are_refused_before_anything_is_entered(tmp_path: Any) -> None:
    ledger = veilog.Ledger.open(tmp_path / "a.ledger", create=True)
    domain = veilog.Domain(attributes={"nope": ("a", "b")})
    for more, wrong in (
        ({"attributes": ["nope"], "domain": domain}, "pripel-attribute-missing"),
        ({"unit": "whose", "max_cases": 2}, "person-attribute-missing"),
    ):
        made = veilog.plan("evolve", epsilon=1, activities="log", **more)
        with refused(ParameterError, wrong):
            made.check(LOG)
        with refused(ParameterError, wrong):
            veilog.release(LOG, made, ledger=ledger)
    assert ledger.show() == ()


@pytest.mark.slow
def test_nothing_is_said_beside_a_plan_that_it_would_not_heed() -> None:
    made = veilog.plan("evolve", epsilon=1, activities="log")
    beside: list[dict[str, Any]] = [
        {"unit": "case:urgency", "max_cases": 1},
        {"epsilon": 2},
        {"seed": 3},
        {"times": 0.3},
        {"depth": 4},
        {"domain": veilog.Domain(max_length=3)},
    ]
    for more in beside:
        with refused(ParameterError, "plan-with-other-settings"):
            veilog.release(LOG, made, **more)
        if not {"seed", "times"} & set(more):
            with refused(ParameterError, "plan-with-other-settings"):
                veilog.audit(made, runs=100, **more)
    assert veilog.release(LOG, made, unit="case", delta=0.0, times=None).guarantee.epsilon == 1


@pytest.mark.parametrize(
    "values", [{}, {"method": "laplace", "window": ["x", "y"]}, {"method": "laplace", "domain": 3}]
)
def test_json_that_is_no_plan_is_refused(values: dict[str, Any]) -> None:
    with refused(InputError, "plan-invalid"):
        veilog.ReleaseRequest.from_json(values)
    with pytest.raises(VeilogError):
        veilog.ReleaseRequest.from_json({"method": "laplace", "epsilon": "-1"})


def test_epsilon_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilon is parsed once, from the request to the plan, and then is a fraction."""
    from veilog.releasing import refusals

    seen: list[object] = []

    def counted(value: Any, name: str = "epsilon") -> Fraction:
        seen.append(value)
        return parse_epsilon(value, name)

    monkeypatch.setattr(refusals, "parse_epsilon", counted)
    veilog.release(LOG, "laplace", epsilon="0.5", domain=veilog.Domain("log", "log"))
    assert seen == ["0.5"]


def test_a_bound_on_the_length_is_asked_for_as_python_takes_it() -> None:
    log = hospital(60, seed=1)
    with pytest.raises(veilog.UndeclaredError) as undeclared:
        veilog.release(log, "laplace", epsilon=1, activities="log")
    for advised in (veilog.Domain(max_length=50), veilog.Domain(max_length="log")):
        shown = f"`domain=veilog.Domain(max_length={advised.max_length!r})`"
        assert shown in str(undeclared.value)
        assert veilog.release(log, "laplace", epsilon=1, activities="log", domain=advised).declared_length
    with refused(veilog.ParameterError, "method-without-max-length"):
        veilog.plan("sacofa", epsilon=1, activities="log", max_length=5)
    assert "--max-length 50" in in_command(undeclared.value)


def test_the_values_of_the_column_that_tells_persons_are_not_looked_for() -> None:
    """Values of the column of persons are not looked for, because they are names.

    Where they are public, as of a staff, they may be declared and released.
    """
    given: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "activities": "log", "max_cases": 2}
    for unit, attribute in (("patient", "patient"), ("patient", "case:patient"), ("case:patient", "patient")):
        with refused(ParameterError, "attribute-names-people"):
            veilog.plan("evolve", unit=unit, attributes=["ward", attribute], **given)
    staff = veilog.Domain(attributes={"nurse": ("A", "B")})
    assert veilog.plan("evolve", unit="nurse", attributes=["nurse"], domain=staff, **given).wanted.attributes
    assert veilog.plan("evolve", unit="person", attributes=["person"], **given).wanted.attributes


def test_a_dry_run_asks_for_as_many_activities_as_the_log_has() -> None:
    """A dry run asks for as many activities as the log has."""
    names = [f"activity {i}" for i in range(30)]
    declared = veilog.plan("df-laplace", epsilon=1, domain=veilog.Domain(activities=names, max_length=10))
    word = veilog.plan("df-laplace", epsilon=1, activities="log", domain=veilog.Domain(max_length=10))
    for cost in (declared.cost, guarantee_of(word, activities=30)):
        assert str(cost.charges[-1].purpose).endswith("(961 sums)")
    assert [c.code for c in guarantee_of(word, activities=30).conditions] == [
        c.code for c in guarantee_of(word).conditions
    ]


def test_parameters_in_one_mapping_are_refused_with_what_to_do() -> None:
    """Parameters in one mapping are refused with the right way."""
    with pytest.raises(ParameterError) as caught:
        veilog.plan("laplace", epsilon=1, parameters={"depth": 5})
    assert caught.value.parameter == "parameters" and "depth=5" in str(caught.value)
