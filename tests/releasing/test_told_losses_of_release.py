"""Losses are confidential values, before and after; noise alone shows in answers."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.privacy.histograms import MISSED, AnswerTotal, exceeded_by_noise, gaussian_rounds
from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.privacy.mechanisms.noise import seeded
from veilog.releasing.losses import Loss, same_name
from veilog.releasing.owner import losses_after
from veilog.releasing.request import plan
from veilog.releasing.result import NOISE_ONLY, OwnerOnly

LOG = hospital(300, seed=1)
NAMES = tuple(LOG.variants.labels)


def coded(losses: tuple[Loss, ...]) -> dict[str, Loss]:
    assert all(str(loss.message) for loss in losses)
    return {loss.code: loss for loss in losses}


@pytest.mark.slow
def test_a_list_that_drops_most_events_is_a_coded_loss_before_and_after() -> None:
    """A list that drops most events is a coded loss, before and after the release."""
    planned = plan("evolve", epsilon=1, activities=NAMES[:2])
    before = coded(planned.losses(LOG))
    events = LOG.variants.to_dict()
    kept = sum(n * sum(label in NAMES[:2] for label in trace) for trace, n in events.items())
    lost = before["events-undeclared"]
    assert (lost.lost, lost.of) == (LOG.variants.events - kept, LOG.variants.events)
    assert (before["activities-undeclared"].lost, before["activities-undeclared"].of) == (len(NAMES) - 2, len(NAMES))
    released = planned.seeded(1).run(LOG)
    assert coded(released.owner_only.losses).keys() >= before.keys()
    assert next(iter(released.to_json()["owner_only"])) == "losses"  # type: ignore[call-overload]


@pytest.mark.slow
def test_an_activity_in_the_wrong_case_is_named_with_the_one_that_is_meant() -> None:
    """An activity in the wrong case is named with the likely intended one."""
    wrong = f" {NAMES[0].upper()}"
    found = coded(plan("evolve", epsilon=1, activities=[wrong, *NAMES[1:]]).losses(LOG))
    absent = found["declared-activities-absent"]
    assert (absent.lost, absent.of, absent.names) == (1, len(NAMES), ((wrong, NAMES[0]),))
    released = veilog.release(LOG, "evolve", epsilon=1, activities=[wrong, *NAMES[1:]], seed=1)
    told = released.to_json()["owner_only"]["losses"]  # type: ignore[call-overload, index]
    assert told[0]["code"] == "declared-activities-absent" and told[0]["names"] == {wrong: NAMES[0]}


def test_no_name_is_proposed_that_differs_in_more_than_case_spaces_and_accents() -> None:
    found = coded(plan("evolve", epsilon=1, activities=[f"{NAMES[0]}s", *NAMES]).losses(LOG))
    assert found["declared-activities-absent"].names == ((f"{NAMES[0]}s", ""),)
    assert same_name("Entlassung  spät") == same_name("ENTLASSUNGspat") != same_name("Entlassungen spät")


def test_losses_of_five_per_cent_or_less_are_none() -> None:
    assert plan("evolve", epsilon=1, activities=NAMES).losses(LOG) == ()
    assert plan("evolve", epsilon=1, activities="log").losses(LOG) == ()
    rarest = min(NAMES, key=lambda name: sum(n * trace.count(name) for trace, n in LOG.variants.to_dict().items()))
    found = coded(plan("evolve", epsilon=1, activities=[name for name in NAMES if name != rarest]).losses(LOG))
    assert "events-undeclared" not in found


def test_cases_beyond_the_length_and_of_persons_that_do_not_count_are_losses() -> None:
    short = plan("evolve", epsilon=1, domain=veilog.Domain(activities=NAMES, max_length=2))
    cut = coded(short.losses(LOG))["events-beyond-length"]
    assert cut.lost == sum(n * max(0, len(trace) - 2) for trace, n in LOG.variants.to_dict().items())
    persons = plan("evolve", epsilon=1, activities=NAMES, unit="age group", max_cases=1)
    ages = len(set(LOG.cases.column("age group").to_pylist()))
    left_out = coded(persons.losses(LOG))["cases-not-counted"]
    assert (left_out.lost, left_out.of) == (300 - ages, 300)


def test_a_release_of_few_cases_and_few_activities_says_so() -> None:
    """A release of few cases and few activities reports both as losses."""
    few = (
        Variants.of({NAMES[:2]: 6})
        if hasattr(Variants, "of")
        else LOG.variants.with_counts(np.minimum(LOG.variants.counts, np.arange(len(LOG.variants)) < 3))
    )
    found = coded(losses_after(LOG.variants, few, ()))
    assert found["cases-not-released"].lost == 300 - few.cases
    assert "events-not-released" in found
    known = (Loss("cases-not-counted", 280, 300),)
    assert coded(losses_after(LOG.variants, few, known)).keys() <= {"cases-not-counted", "activities-not-released"}


@pytest.mark.slow
def test_losses_reach_nobody_but_the_owner(tmp_path: Path) -> None:
    """Releases that differ in their losses alone are equal in all that others get."""
    released = veilog.release(LOG, "laplace", depth=2, epsilon=1, activities=NAMES, seed=1)
    other = replace(released, owner_only=OwnerOnly(losses=(Loss("events-undeclared", 12_595, 14_732),)))
    assert repr(released) == repr(other) and released._repr_html_() == other._repr_html_()
    told = [{**each.to_json(), "owner_only": None} for each in (released, other)]
    assert json.dumps(told[0]) == json.dumps(told[1])
    for number, each in enumerate((released, other)):
        each.save(tmp_path / f"{number}.xes")
    assert (tmp_path / "0.xes").read_bytes() == (tmp_path / "1.xes").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [1, 12, 400])
def test_noise_alone_exceeds_its_level_no_more_often_than_stated(numbers: int) -> None:
    """Noise alone exceeds its level in 1 of 20 sums, as stated (2,000 sums, seed 7)."""
    for noise in (Laplace(Fraction(7)), gaussian_rounds((Fraction(1),), Fraction(1), Fraction(1, 10**6))):
        sums = noise.draw(2000 * numbers, seeded(7)).reshape(2000, numbers).sum(axis=1)
        level = exceeded_by_noise([AnswerTotal(0, numbers, noise, True)], 0.05)
        above = float((sums > level).mean())
        assert abs(above - 0.05) <= 3 * np.sqrt(0.05 * 0.95 / 2000) + 0.01


def empty() -> Variants:
    return LOG.variants.with_counts(np.zeros(len(LOG.variants), dtype=np.int64))


@pytest.mark.slow
def test_a_release_of_no_cases_is_known_by_its_answers() -> None:
    """Releases of no cases are recognised: at least 29 of 30, and none of 300 cases."""
    planned = plan("df-laplace", epsilon=1, domain=veilog.Domain(activities=NAMES, max_length=20))
    noise = [planned.seeded(seed).run(empty()) for seed in range(30)]
    assert MISSED == 0.01 and sum(released.noise_only is True for released in noise) >= 29
    assert all(
        released.remarks[0] == NOISE_ONLY for released in noise if released.noise_only and released.variants.cases
    )
    real = [planned.seeded(seed).run(LOG.variants) for seed in range(10)]
    assert not any(released.noise_only for released in real)
    assert not any(NOISE_ONLY in released.remarks for released in real)


@pytest.mark.slow
def test_a_part_without_cases_is_noise_only_in_json_outside_the_owners_part() -> None:
    asked = {"depth": 2, "epsilon": 1, "activities": NAMES, "seed": 3}
    released = veilog.release(LOG, "laplace", **asked, subset="month=1999-01")
    assert released.noise_only is True and released.to_json()["noise_only"] is True
    assert veilog.release(LOG, "laplace", **asked).to_json()["noise_only"] is False
    assert veilog.release(LOG, "travas", epsilon=1, delta=0.01, seed=3).noise_only is None
