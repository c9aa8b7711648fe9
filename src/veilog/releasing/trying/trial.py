"""A dry run: what a plan would ask of the data and what that would cost, before anything is asked.

It never touches a log that matters. The method is tried on a small made-up log of patients with the same budget and
settings; what it asks there, it asks of the real log too, as often as the answers let it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from veilog.logs.eventlog import START, TIMESTAMP, EventLog
from veilog.logs.made_up.simulate import hospital
from veilog.methods._events.assemble import Wanted
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Charge, Condition, Guarantee
from veilog.privacy.domain import ACTIVITIES_FROM_LOG, FROM_LOG, LENGTH_FROM_LOG, Fact
from veilog.privacy.events import columns_taken
from veilog.privacy.mechanisms.mechanism import Sensitivity, Stated
from veilog.privacy.unit import ONE_CASE, Unit, conditions_of_part
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.run import LABELS_SHARE, run_plan

__all__ = ["PATIENTS", "on_made_up", "tried"]

PATIENTS = 120
_OF_THE_LOG = ("sensitive", "attribute_names")
"""Settings that name attributes, which the made-up log does not have."""
_LESS_WORK: Mapping[str, Mapping[str, int]] = {
    "travag": {"critic_steps": 10, "free_generator_steps": 1},
    "utravas": {"repetitions": 1},
}
"""What shortens a trial and changes neither its questions nor their cost."""
_TAKEN: Mapping[Fact, str] = {"activities": "activities-from-log", "max_length": "length-from-log"}


def tried(plan: ReleaseRequest, activities: int | None = None, longest: int | None = None) -> Guarantee:
    """Return the guarantee of a release of made-up patients; what the method refuses there for its budget or settings
    raises, as it would for the real log. ``activities`` and ``longest`` are the number of activities of the log and the
    length of its longest case, for where its owner says that these are public."""
    trial = on_made_up(plan)
    declared = trial.declared
    before, after = _labels_found(plan), _values_asked(plan)
    # Activities that are declared for the real log are not those of the made-up one; the questions are the same if they
    # are as many. So few patients have no labels that are frequent enough to be found.
    if declared.alphabet is not None:
        declared = replace(declared, activities=_so_many(len(declared.alphabet)))
    elif before:
        declared = replace(declared, activities=_so_many(len(_made_up().variants.labels)))
    words: list[Condition] = []
    if plan.declared.activities == FROM_LOG and activities is not None:
        declared = replace(declared, activities=_so_many(activities))
        words.append(ACTIVITIES_FROM_LOG)
    if plan.declared.max_length == FROM_LOG and longest is not None:
        declared = replace(declared, max_length=longest)
        words.append(LENGTH_FROM_LOG)
    quick = _LESS_WORK.get(plan.method.name, {})
    trial = replace(trial, declared=declared, settings=replace(trial.settings, **quick))
    for stated in (*before, *after):
        trial = replace(trial, epsilon=trial.epsilon - stated.epsilon, delta=trial.delta - stated.delta)
    times = plan.wanted.times / (1 - plan.wanted.attributes_share)
    trial = replace(trial, wanted=replace(trial.wanted, times=times, processing=plan.wanted.processing))
    guarantee = run_plan(trial, _made_up()).guarantee
    if before or after:
        guarantee = replace(guarantee, charges=(*before, *guarantee.charges, *after))
        if guarantee.proven:
            guarantee = replace(guarantee, epsilon=round_up(plan.epsilon), delta=round_up(plan.delta))
    # Made-up people have no column that tells them apart, and what nobody has said is no condition yet.
    of_the_trial: set[str] = {_TAKEN[fact] for fact in plan.undeclared}
    of_the_trial |= {"nobody-has-more"} if plan.unit.column is not None else set()
    found = tuple(condition for condition in guarantee.conditions if condition.code not in of_the_trial)
    conditions = tuple(dict.fromkeys((*words, *found)))
    if plan.unit.column is not None:
        conditions = (*plan.unit.conditions, *conditions)
    if guarantee.proven and _of_attributes(plan):
        conditions = tuple(dict.fromkeys((*conditions, *columns_taken(_made_up()))))
    if plan.part is None:
        return replace(guarantee, conditions=conditions)
    conditions = (*conditions_of_part(plan.part, plan.unit, plan.remember_units), *conditions)
    neighbours = plan.part.among(guarantee.neighbours)
    return replace(guarantee, conditions=conditions, part=plan.part, neighbours=neighbours)


def on_made_up(plan: ReleaseRequest) -> ReleaseRequest:
    """Return the plan as it can be run on a made-up log, which has no attributes and no column of persons.

    What nobody has said yet is taken as if the log's were public; the release itself is refused.
    """
    usual = plan.method.settings()
    names = {parameter.name for parameter in plan.method.parameters}
    return replace(
        plan,
        settings=replace(plan.settings, **{name: getattr(usual, name) for name in _OF_THE_LOG if name in names}),
        declared=plan.declared.taken_from_log(plan.undeclared),
        unit=plan.unit if plan.unit is ONE_CASE else Unit("person", plan.unit.most_cases),
        part=None,  # made-up cases are of no month; what a part is asked is what the whole is
        wanted=replace(plan.wanted, attributes=(), attributes_share=Wanted().attributes_share, processing=False),
    )


def _of_attributes(plan: ReleaseRequest) -> bool:
    """Whether attributes are looked at, which the made-up log does not have. (How those of the log are read is not
    known yet.)"""
    by_setting = any(getattr(plan.settings, name, None) for name in _OF_THE_LOG)
    by_part = plan.part is not None and not plan.part.of_time
    return bool(plan.wanted.attributes) or by_setting or by_part


def _labels_found(plan: ReleaseRequest) -> tuple[Charge, ...]:
    """What finding the labels privately costs, where they are."""
    if not plan.uses.labels:
        return ()
    mechanism, sensitivity = Stated("discrete Laplace"), Sensitivity.of(1, "L1", "split")
    purpose, epsilon = "the activities that enough cases have", plan.epsilon * LABELS_SHARE
    return (Charge("labels", purpose, mechanism, sensitivity, epsilon, plan.uses.of(plan.delta)[0]),)


def _values_asked(plan: ReleaseRequest) -> tuple[Charge, ...]:
    """What the values of attributes cost, where some are released, which the made-up log does not have."""
    wanted, uses = plan.wanted, plan.uses
    if not wanted.attributes:
        return ()
    rest = 1 - LABELS_SHARE if uses.labels else 1
    delta = uses.of(plan.delta)[0] if uses.values else Fraction(0)
    mechanism, sensitivity = Stated("discrete Laplace"), Sensitivity.of(1, "L1", "split")
    purpose, epsilon = "values of attributes", plan.epsilon * rest * wanted.attributes_share
    return (Charge("values", purpose, mechanism, sensitivity, epsilon, delta),)


def _so_many(number: int) -> tuple[str, ...]:
    """So many activities, as many of the made-up patients' among them as fit."""
    labels = tuple(_made_up().variants.labels)[:number]
    return labels + tuple(f"activity {place}" for place in range(len(labels), number))


@lru_cache(maxsize=1)
def _made_up() -> EventLog:
    made = hospital(PATIENTS, seed=1)
    return replace(made, events=made.events.append_column(START, made.events.column(TIMESTAMP)))
