"""Attributes from a prior: equal queries and charges, better if it is right."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from event_questions import heard
from logs_with_attributes import log_of

from veilog.logs.eventlog import EventLog
from veilog.methods._events.assemble import Details, assemble_log, released_cases
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

DOMAIN = Domain(attributes={"ward": ("a", "b", "c"), "paid": ("no", "yes"), "age": (0, 100)})


def stays(cases: int, seed: int, *, wrong: bool = False) -> EventLog:
    """Return stays whose tests and payment depend on the ward; ``wrong`` swaps wards."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(cases):
        ward = int(rng.choice(3, p=[0.6, 0.3, 0.1]))
        paid = rng.random() < (0.2, 0.7, 0.9)[ward]
        has = rng.random(4) < np.array([(0.8, 0.3, 0.5), (0.2, 0.7, 0.5), (0.5, 0.1, 0.9), (0.5, 0.5, 0.5)])[:, ward]
        path = ["in", *(f"test {i}" for i in np.flatnonzero(has)), "out"]
        age = float(rng.integers(20, 40) + 40 * (ward == 1))
        if wrong:
            ward, paid, age = 2 - ward, not paid, 100 - age
        values = {"ward": "abc"[ward], "paid": "yes" if paid else "no", "age": age}
        made.append((values, [{"activity": name} for name in path]))
    return log_of(made)


OWN, OTHERS = stays(1_000, 1), stays(4_000, 2)


def valued(prior: EventLog | None, epsilon: str, seed: int) -> tuple[EventLog, list[str]]:
    source = noise.seeded(seed)
    curator = Curator(OWN.variants, log=OWN, domain=DOMAIN, randomness=source)
    cases = released_cases(OWN.variants, noise.generator(source))
    said: list[Any] = []
    chosen, rest = choose(curator, tuple(DOMAIN.attributes), Fraction(epsilon), Fraction(0), said.append)
    known = None if prior is None else PriorTimes([prior], DOMAIN)
    columns = released_attributes(curator, rest, cases, chosen, None, said.append, prior=known)
    assert sum((charge.epsilon for charge in curator.charges), Fraction(0)) == Fraction(epsilon)
    return assemble_log(Details(cases, columns=columns), OWN.metadata), [message.code for message in said]


def test_a_prior_changes_no_question_and_no_sensitivity() -> None:
    """A prior changes no query of values; later tables follow from the answers."""
    asked = []
    for prior in (None, OTHERS):
        with heard() as questions:
            _, said = valued(prior, "0.2", 3)
        asked.append([(size, bound) for _, size, bound, more in questions if "by-case" in str(more["purpose"].code)])
        assert ("attributes-lean-on-prior" in said) == (prior is not None)
    assert asked[0][:2] == asked[1][:2]


def off(log: EventLog) -> float:
    """Return the mean total variation between wards with tests and those of the log."""
    found = []
    for one in (log, OWN):
        ward, names = one.cases.column("ward").to_pylist(), one.events.column("concept:name").to_pylist()
        paths = [set(names[a:z]) for a, z in itertools.pairwise(one.offsets.tolist())]
        tests = [f"test {i}" for i in range(4)]
        keys = [f"{w} {test} {test in path}" for w, path in zip(ward, paths, strict=True) for test in tests]
        kinds, counts = np.unique(keys, return_counts=True)
        found.append(dict(zip(kinds.tolist(), (counts / len(ward)).tolist(), strict=True)))
    return sum(abs(found[0].get(key, 0.0) - found[1].get(key, 0.0)) for key in {*found[0], *found[1]}) / 8


@pytest.mark.slow
def test_a_right_prior_helps_and_a_wrong_one_loses_its_weight() -> None:
    right, plain, wrong = (
        np.array([off(valued(prior, "1", seed)[0]) for seed in range(8)])
        for prior in (OTHERS, None, stays(4_000, 2, wrong=True))
    )
    assert right.mean() < 0.85 * plain.mean()
    assert wrong.mean() < plain.mean() + 2 * plain.std() / 8**0.5 + 0.01


def test_a_prior_with_other_columns_is_left_out() -> None:
    other = log_of([({"ward": "a"}, [{"activity": "in"}])] * 50)
    log, said = valued(other, "0.5", 1)
    assert {"ward", "paid", "age"} <= {*log.cases.column_names} and "attributes-lean-on-prior" in said
    texts = log_of([({"age": "old"}, [{"activity": "in"}])] * 50)
    assert "attributes-lean-on-prior" not in valued(texts, "0.5", 1)[1]
