"""Cases without a person: a policy for each alone, its guarantee, and its readers."""

from collections import Counter
from pathlib import Path
from typing import Any

import openly
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from test_persons import kept, log

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.storage.loader import store
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import Unit, WithoutPerson, bound_units

OWN: dict[str, Any] = {"unit": "case:person", "max_cases": 2, "without_person": "own"}
OWNERS = st.lists(st.sampled_from(["p", "q", "r", None]), min_size=1, max_size=12)


def looked_at(owners: list[object], most: int, without_person: WithoutPerson, seed: int) -> Counter[object]:
    return kept(bound_units(log(owners), Unit("person", most, "case:person", without_person), noise.seeded(seed)).log)


@pytest.mark.slow
@given(owners=OWNERS, more=st.integers(0, 6), without=st.integers(0, 6), most=st.integers(1, 4))
def test_left_out_adds_at_most_so_many_cases_of_a_person_some_of_whose_lack_the_name(
    owners: list[object], more: int, without: int, most: int
) -> None:
    before = looked_at(owners, most, "left-out", 1)
    after = looked_at([*owners, *["new"] * more, *[None] * without], most, "left-out", 2)
    assert after == before + Counter({"new": min(more, most)})
    assert None not in after


@pytest.mark.slow
@given(owners=OWNERS, more=st.integers(1, 6), most=st.integers(1, 4))
def test_own_adds_at_most_so_many_cases_of_a_person_or_one_that_names_nobody(
    owners: list[object], more: int, most: int
) -> None:
    before = looked_at(owners, most, "own", 1)
    assert before[None] == owners.count(None)
    assert looked_at([*owners, *["new"] * more], most, "own", 2) == before + Counter({"new": min(more, most)})
    assert looked_at([*owners, None], most, "own", 3) == before + Counter({None: 1})


@pytest.mark.parametrize("column", ["patient", "case:patient"])
def test_a_case_that_names_two_people_is_left_out_whatever_the_column_is_called(tmp_path: Path, column: str) -> None:
    """A case with two persons is left out, whichever is first and whatever the column."""
    rows = [f"c{i},a,2024-01-01,A{i}\nc{i},b,2024-01-02,B" for i in range(10)]
    one = "d,a,2024-01-01,C\nd,b,2024-01-02,C"
    (tmp_path / "log.csv").write_text("\n".join([f"case,activity,time,{column}", *rows, one]))
    seen = bound_units(veilog.read(tmp_path / "log.csv"), Unit.of(column, 1), noise.seeded(1)).log
    assert seen.number_of_cases == 1


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
@pytest.mark.parametrize("without_person", ["left-out", "own"])
def test_no_log_is_refused_for_a_case_that_names_nobody(missing: object, without_person: str) -> None:
    asked = {"unit": "case:person", "max_cases": 2, "without_person": without_person, "delta": "1e-3"}
    for owners in (["p", "q"], ["p", "q", missing], ["p", missing]):
        assert veilog.release(log(owners), "travas", epsilon=1, **asked).guarantee.proven, owners


def test_a_column_that_names_nobody_in_any_case_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    ledger = tmp_path / "l.ledger"
    asked: dict[str, Any] = {"epsilon": 1, "delta": "1e-3", "unit": "case:person", "max_cases": 2, "ledger": ledger}
    with refused(InputError, "unit-column-without-value"):
        veilog.release(log([None, None]), "travas", **asked)
    assert not ledger.exists()
    assert veilog.release(log([None, None]), "travas", without_person="own", **asked).guarantee.proven


def test_own_is_a_condition_and_says_whom_it_is_for_and_left_out_takes_nothing_for_granted() -> None:
    usual = {"unit": "case:person", "max_cases": 2}
    left = veilog.plan("travas", epsilon=1, delta="1e-3", **usual)
    own = veilog.plan("travas", epsilon=1, delta="1e-3", **OWN)
    held = log(["p", "q", None])
    for planned, codes, alone in ((left, [], False), (own, ["without-person-are-single"], True)):
        for guarantee in (planned.cost, planned.run(held).guarantee):
            assert [c.code for c in guarantee.conditions] == codes
        assert guarantee.neighbours.code.startswith("neighbours-by-column-or-without-person") == alone


def test_what_a_release_says_does_not_depend_on_whether_a_case_names_nobody() -> None:
    asked = {"epsilon": 1, "delta": "1e-3", "seed": 1}
    for more in ({"unit": "case:person", "max_cases": 2}, OWN):
        with_one, without = (veilog.release(log(["p", *last]), "travas", **asked, **more) for last in ([None], ["p"]))
        assert with_one.remarks == without.remarks
        assert {"unit-cases-of-several-dropped", "unit-cases-without-person-dropped"} & {
            remark.code for remark in without.remarks
        }


def test_how_many_cases_name_nobody_is_told_the_owner_alone() -> None:
    held = log(["p"] * 3 + [None] * 2)
    left = veilog.release(held, "travas", epsilon=1, delta="1e-3", unit="case:person", max_cases=5)
    assert "cases-without-person" in [note.code for note in left.owner_only.notes]
    own = veilog.release(held, "travas", epsilon=1, delta="1e-3", **OWN)
    assert "cases-of-their-own" in [note.code for note in own.owner_only.notes]
    for released in (left, own):
        facts = released.to_json()
        facts.pop("owner_only")
        assert "2 of 5" not in str(facts)


def test_the_policy_is_in_the_plan_the_command_and_the_ledger(tmp_path: Path) -> None:
    planned = veilog.plan("travas", epsilon=1, delta="1e-3", **OWN)
    assert veilog.ReleaseRequest.from_json(planned.to_json()) == planned
    assert "--without-person own" in planned.command() and "without_person='own'" in planned.python()
    ledger = veilog.Ledger.open(tmp_path / "log.ledger", create=True)
    held = log(["p", None])
    planned.run(held, ledger=ledger)
    veilog.release(held, "travas", epsilon=1, delta="1e-3", unit="case:person", max_cases=2, ledger=ledger)
    account = ledger.account(held)
    assert account is not None
    assert [entry.parameters.get("without_person") for entry in account.entries] == ["own", None]
    assert account.spent is not None and account.spent[0] == 2, "they are of the same people, and add up"


@pytest.mark.parametrize(("unit", "without_person"), [("case", "own"), ("person", "own"), ("case:person", "refused")])
def test_a_policy_that_makes_no_sense_is_refused_in_words(unit: str, without_person: str) -> None:
    most = None if unit == "case" else 2
    with pytest.raises(ParameterError) as refused:
        openly.release(log(["p", "q"]), "evolve", epsilon=1, unit=unit, max_cases=most, without_person=without_person)
    assert refused.value.parameter == "without_person"


@pytest.mark.slow
@pytest.mark.parametrize(("without_person", "cases"), [("left-out", 3), ("own", 5)])
def test_a_log_on_disk_leaves_out_what_one_in_memory_does(
    tmp_path: Path, without_person: WithoutPerson, cases: int
) -> None:
    held = log(["p", None, "q", None, "p"])
    veilog.write(held, tmp_path / "log.parquet")
    unit = Unit("person", 5, "case:person", without_person)
    for given_log in (held, store(tmp_path / "log.parquet")):
        assert bound_units(given_log, unit, noise.seeded(1)).variants.cases == cases


def test_frames_with_whole_numbers_and_a_gap_name_the_same_people() -> None:
    rows = [(str(i), "a", "2024-01-01T00:00:00Z", who) for i, who in enumerate([7, 7, None])]
    frame = pd.DataFrame(rows, columns=["case:concept:name", "concept:name", "time:timestamp", "case:person"])
    found = bound_units(veilog.read(frame), Unit("person", 1, "case:person"), noise.seeded(1)).log
    assert found.cases.num_rows == 1
