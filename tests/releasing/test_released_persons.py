"""Releases with synthetic persons: refusals, equal values per person, and remarks."""

from pathlib import Path
from typing import Any

import numpy as np
import openly
import pandas as pd
import pytest
from refusals import refused

import veilog
from veilog import EventLog, Ledger, ParameterError
from veilog.privacy.domain import Domain
from veilog.releasing.request import ReleaseRequest, plan

WHOM: dict[str, Any] = {"unit": "Patient", "max_cases": 3}
WINDOW = "2024-01-01..2026-01-01"


def hospital(persons: int = 300, seed: int = 1) -> EventLog:
    rng, begin, rows, case = np.random.default_rng(seed), pd.Timestamp("2024-01-05", tz="UTC"), [], 0
    for person in range(persons):
        day, sex, born = rng.uniform(0, 500), "fm"[int(rng.integers(2))], int(rng.integers(1940, 2010))
        for _ in range(int(rng.choice([1, 2, 3, 5], p=[0.5, 0.3, 0.15, 0.05]))):
            names = ["abcd", "aabb", "cb", "dcab"][int(rng.integers(4))]
            rows += [
                (f"c{case}", name, begin + pd.Timedelta(days=day, hours=hour), f"secret-{person}", sex, born)
                for hour, name in enumerate(names)
            ]
            case, day = case + 1, day + rng.uniform(2, 90)
    names_of = ["case:concept:name", "concept:name", "time:timestamp", "case:Patient", "case:sex", "case:born"]
    return veilog.read(pd.DataFrame(rows, columns=names_of))


LOG = hospital()
DOMAIN = Domain(attributes={"sex": ("f", "m"), "born": (1940, 2010)})
ATTRIBUTES: dict[str, Any] = {"attributes": ["sex", "born"], "attributes_share": "0.2"}


def released(method: str = "evolve", **more: Any) -> veilog.Release:
    asked = {"epsilon": 12, "persons": "0.3", "times": "0.2", "window": WINDOW, "seed": 1, **WHOM, **more}
    return openly.release(LOG, method, domain=DOMAIN, **{name: value for name, value in asked.items() if value})


def persons_in(release: veilog.Release) -> list[str]:
    return [str(name) for name in release.log.cases.column("Patient").to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evolve", "laplace", "sacofa", "df-laplace", "dpim"])
def test_methods_of_variants_release_persons_and_nothing_of_the_real_ones(method: str) -> None:
    names = persons_in(release := released(method))
    assert len(names) == release.variants.cases
    assert 1 < len(set(names)) < len(names), "some come back"
    text = str(release.log.to_pandas().to_dict()) + str(release.to_json())
    assert "secret-" not in text
    questions = [charge.question for charge in release.guarantee.charges]
    assert questions.count("person sums") in (2, 3)


def test_persons_cost_their_share_and_the_release_its_budget(tmp_path: Path) -> None:
    ledger = tmp_path / "l.ledger"
    asked = {"epsilon": 3, "persons": "0.3", "times": "0.2", "window": WINDOW, **WHOM}
    said = Domain().taken_from_log(["activities", "max_length"])
    release = veilog.release(LOG, "evolve", ledger=ledger, domain=said, **asked)  # type: ignore[arg-type]
    assert release.guarantee.epsilon == 3 and release.guarantee.unit == "person"
    spent = sum(charge.epsilon for charge in release.guarantee.charges if charge.question == "person sums")
    assert float(spent) == pytest.approx(3 * 0.3)
    assert [(one.target, one.epsilon) for one in release.operations][-1] == ("persons: Patient", pytest.approx(0.9))
    (entry,) = Ledger(ledger).show()[0].entries
    assert entry.unit == "Patient" and entry.parameters["persons"] == 0.3 and entry.parameters["max_cases"] == 3
    assert "persons-made-up" in [remark.code for remark in release.remarks]
    assert "cases-for-returns-only" in [note.code for note in release.owner_only.notes]


@pytest.mark.slow
def test_attributes_of_persons_are_the_same_in_all_their_cases() -> None:
    release = released(**ATTRIBUTES, person_attributes=["sex", "case:born"])
    frame = pd.DataFrame({name: release.log.cases.column(name).to_pylist() for name in ("Patient", "sex", "born")})
    assert frame.groupby("Patient").size().max() > 1
    for name in ("sex", "born"):
        assert frame.groupby("Patient")[name].nunique(dropna=False).max() == 1
    free = released(**ATTRIBUTES)
    frame = pd.DataFrame({name: free.log.cases.column(name).to_pylist() for name in ("Patient", "born")})
    assert frame.groupby("Patient")["born"].nunique().max() > 1


@pytest.mark.slow
def test_no_case_breaks_a_rule_for_its_person() -> None:
    rules = [{"attribute": "born >= 1960", "if": "sex = f"}, {"first": ["a", "c", "d"]}]
    release = released(**ATTRIBUTES, person_attributes=["born"], rules=rules)
    sexes, born = (release.log.cases.column(name).to_pylist() for name in ("sex", "born"))
    assert all(year >= 1960 for sex, year in zip(sexes, born, strict=True) if sex == "f" and year is not None)
    frame = pd.DataFrame({"Patient": persons_in(release), "born": born})
    assert frame.groupby("Patient").size().max() > 1
    assert frame.groupby("Patient")["born"].nunique(dropna=False).max() == 1


@pytest.mark.slow
def test_a_sample_has_persons_of_its_own() -> None:
    sample = released().sample(300, seed=1)
    people = sample.cases["Patient"].to_pylist()
    sizes = np.bincount(np.unique(people, return_inverse=True)[1])
    assert len(people) == 300 and sizes.max() > 1 and None not in people


@pytest.mark.slow
def test_cases_and_times_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases and times are drawn as without persons, which are one more column."""
    with_ = released()
    monkeypatch.setattr("veilog.methods._events.extras.asked_persons", lambda *given, **named: None)
    without = released()
    assert with_.variants == without.variants
    assert with_.log.events.equals(without.log.events)
    assert "Patient" not in without.log.cases.column_names


def test_a_budget_that_is_too_small_gives_cases_without_persons_and_says_so() -> None:
    release = released(epsilon="0.2")
    assert "Patient" not in release.log.cases.column_names
    (remark,) = [remark for remark in release.remarks if remark.code == "persons-not-released"]
    assert remark.values["off"] > 0.05  # noqa: PD011
    assert not [charge for charge in release.guarantee.charges if charge.question == "person sums"]
    assert "cases-for-returns-only" not in [note.code for note in release.owner_only.notes]


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("persons-without-column", {"persons": 0.2}),
        ("persons-without-column", {"persons": 0.2, "unit": "person", "max_cases": 2}),
        ("persons-of-one-case", {"persons": 0.2, "unit": "Patient", "max_cases": 1}),
        ("person-attributes-without-persons", {**WHOM, **ATTRIBUTES, "person_attributes": ["sex"]}),
        ("person-attribute-not-released", {**WHOM, **ATTRIBUTES, "persons": 0.2, "person_attributes": ["age"]}),
        ("shares-leave-nothing", {**WHOM, "persons": 0.6, "times": 0.4}),
        ("share-out-of-range", {**WHOM, "persons": 1.5}),
        ("method-extras-of-its-own", {**WHOM, "persons": 0.2, "method": "pripel"}),
    ],
)
def test_what_cannot_be_is_refused_before_any_data(code: str, options: dict[str, Any]) -> None:
    given = {"epsilon": 1, "domain": DOMAIN, **options}
    with pytest.raises(ParameterError) as caught:
        plan(given.pop("method", "evolve"), **given)
    assert caught.value.code == code or code == "share-out-of-range"


def test_names_of_persons_are_not_released_beside_made_up_ones() -> None:
    domain = Domain(attributes={"Patient": ("x", "y")})
    with refused(ParameterError, "persons-named-twice"):
        plan("evolve", epsilon=1, domain=domain, attributes=["Patient"], persons=0.2, **WHOM)


def test_an_attribute_of_events_is_none_of_a_person() -> None:
    events = pd.DataFrame(LOG.to_pandas()).rename(columns={"case:sex": "sex"})
    asked = openly.planned(
        "evolve", epsilon=1, domain=DOMAIN, persons="0.2", person_attributes=["sex"], **{**ATTRIBUTES, **WHOM}
    )
    with refused(ParameterError, "person-attribute-of-events"):
        asked.seeded(1).run(veilog.read(events), ledger=False)


def test_a_request_is_the_same_after_a_round_trip_and_as_a_command() -> None:
    asked = plan(
        "evolve", epsilon=1, activities=("a", "b"), domain=DOMAIN, persons="0.15", person_attributes=["sex"],
        **{**ATTRIBUTES, **WHOM},
    )  # fmt: skip
    again = ReleaseRequest.from_json(asked.to_json())
    assert again.wanted == asked.wanted and again.to_json() == asked.to_json()
    command = asked.command()
    assert "--persons 0.15" in command and "--person-attributes sex" in command
    assert "persons='0.15'" in asked.python()


def test_what_a_release_with_persons_will_cost_is_said_beforehand() -> None:
    asked = openly.planned("evolve", epsilon=2, times="0.2", persons="0.3", **WHOM)
    cost = asked.cost
    assert cost.epsilon == 2
    (persons,) = [charge for charge in cost.charges if charge.question == "person sums"]
    assert float(persons.epsilon) == pytest.approx(0.6)
    expected = asked.expected(cases=300, length=4, twins=2)
    assert expected.similarity is not None
