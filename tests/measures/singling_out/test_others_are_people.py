"""Others' cases are those of other people, if the log identifies persons."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants
from veilog.measures import UseCaseOptions, compare
from veilog.measures.persons import persons_of
from veilog.measures.singling_out import inference, linkability, singling_out
from veilog.measures.singling_out.inference import Inferred
from veilog.measures.singling_out.linkage import (
    Linked,
    _draw_lists,
    _group_by_activities,
    _match_by_others,
    _match_chances,
)
from veilog.measures.singling_out.measure import Knowledge
from veilog.measures.singling_out.rates import Z_BEYOND, paired_gain
from veilog.report.facts import dossier_facts, gather_facts
from veilog.report.release_facts import facts_of_release

Visits = Sequence[tuple[str | None, str]]
"""Person of each case, and its activities, one letter each."""
DAY = 86_400_000_000


def log(visits: Visits, days: Sequence[int] | None = None) -> EventLog:
    """These cases, which start on these days."""
    case = [i for i, (_, trace) in enumerate(visits) for _ in trace]
    times = [
        None if days is None else days[i] * DAY + j for i, (_, trace) in enumerate(visits) for j in range(len(trace))
    ]
    events = {
        CASE_INDEX: pa.array(case, pa.int64()),
        EVENT_INDEX: pa.array(range(len(case)), pa.int64()),
        ACTIVITY: pa.array([label for _, trace in visits for label in trace], pa.string()).dictionary_encode(),
        TIMESTAMP: pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
    }
    names = pa.array([f"{i:04}" for i in range(len(visits))])
    people = pa.array([person for person, _ in visits], pa.string())
    return EventLog(pa.table(events), pa.table({ACTIVITY: names, "Patient": people}))


def variants(**counts: int) -> Variants:
    return Variants.from_dict({tuple(trace): count for trace, count in counts.items()})


def population(people: int, seed: int, like: float = 0.8, most: int = 6, length: int = 4) -> EventLog:
    """Return people of a common process with one to ``most`` visits, mostly alike."""
    rng = np.random.default_rng(seed)

    def trace() -> str:
        return "".join("abc"[int(i)] for i in rng.integers(0, 3, length))

    visits = []
    for person in range(people):
        usual = trace()
        visits += [
            (f"p{person}", usual if rng.random() < like else trace()) for _ in range(int(rng.integers(1, most + 1)))
        ]
    return log([visits[i] for i in rng.permutation(len(visits))])


def baselines(row: Knowledge) -> tuple[float, float]:
    return row.singled_out.baseline.value, row.guessed.baseline.value


FEW: Visits = [("p", "ab"), ("r", "ad"), ("p", "ac"), ("q", "ab"), ("p", "ab"), ("r", "ad")]


def test_a_worked_example() -> None:
    """Either event of a case is known, each with a chance of 1/2.

    Guessed, for a visit ab of p: without p's other visits there are ab (this one), ab, ad, ad. Of these a fits two ab
    and two ad, 1/2, and b fits ab alone, 1: together 3/4. For p's ac and for a visit ad of r no one else has the trace:
    0. For q's ab: three ab, one ac, two ad: 1. Together (2 * 3/4 + 1) / 6. If visits were people, ab were right for
    three, and ad, which two have, where d is known: 4/6.

    Singled out, by two cases drawn from others' cases: those of p are not among them, so of the three left b fits one:
    2 * 1/3 * 2/3, and a fits all: 0. For q's, b fits two of five: 2 * 2/5 * 3/5.
    """
    released = variants(ad=2)
    (row,) = singling_out(log(FEW), released, person="Patient", sizes=[1]).results
    assert (row.people, row.exact) == (6, True)
    assert baselines(row) == pytest.approx(((2 * 4 / 9 + 12 / 25) / 2 / 6, (2 * 3 / 4 + 1) / 6))
    assert baselines(singling_out(log(FEW), released, person=False, sizes=[1]).results[0])[1] == pytest.approx(4 / 6)


def test_who_comes_as_often_as_others_turns_no_tie() -> None:
    """Three people come four times for ab, and three for ac, so each guess is even.

    With one case for the person attacked, both would be wrong for everyone, and a log of others would seem to reveal
    them.
    """
    visits = [(f"{trace}{i}", trace) for trace in ("ab", "ac") for i in range(3) for _ in range(4)]
    (row,) = singling_out(log(visits), variants(ab=1, ac=1), person="Patient", sizes=[1]).results
    assert row.guessed.baseline.value == row.guessed.released.value == pytest.approx(3 / 4)
    (end,) = inference(log(visits), variants(ab=1, ac=1), person="Patient", sizes=[1]).results
    assert end.guessed.baseline.value == end.guessed.released.value == pytest.approx(1 / 2)
    uneven = [("p", "ab")] * 2 + [("q", "ab")] * 8 + [("r", "ac")] * 5 + [("s", "ac")] * 5
    (end,) = inference(log(uneven), variants(ab=1, ac=1), person="Patient", sizes=[1]).results
    # p: 8 * 2 ab against 10 ac, 1. q: 2 * 2 against 10, 0. r and s: 5 * 2 against 10, 1/2.
    assert end.guessed.baseline.value == pytest.approx((2 + 10 / 2) / 20)


def test_others_who_started_about_then_are_other_people() -> None:
    """An event and the day are known; an attacker who finds none drops the day.

    p: on day 3 there is no one else, so without it, and without the other visit: two ab, three ac, two ad. By a it is
    ac, 0, and by b ab, 1: 1/2 for each of the two visits. q's ab: s has ac on the day and no one ab, so by a 0; by b,
    without the day, 1: 1/2. q's ac: s has it, too, and q's ab is none: 1. r: without the day, ab and ac thrice each: by
    a 1/2, by c 1. s: ac is more frequent than ab: 1. t and u: 1. By cases p's visits reveal each other: 1.
    """
    visits = [("p", "ab"), ("q", "ab"), ("q", "ac"), ("r", "ac"), ("p", "ab"), ("s", "ac"), ("t", "ad"), ("u", "ad")]
    own = log(visits, [3, 9, 9, 0, 3, 9, 20, 20])
    by_people, by_cases = (singling_out(own, own, person=p, sizes=[1]).results[1] for p in ("Patient", False))
    assert by_people.with_start and by_people.guessed.original == by_cases.guessed.original
    assert by_people.guessed.baseline.value == pytest.approx((2 * 1 / 2 + 1 / 2 + 1 + 3 / 4 + 1 + 2) / 8)
    assert by_cases.guessed.baseline.value == pytest.approx((2 * 1 + 1 / 2 + 1 + 3 / 4 + 1 + 2) / 8)


def test_a_leak_that_a_persons_other_visits_hid_is_seen() -> None:
    """A leak shows although each person repeats a trace of their own four times."""
    traces = ["".join(trace) for trace in itertools.islice(itertools.permutations("abcdef", 4), 60)]
    own = log([(f"p{i}", trace) for i, trace in enumerate(traces) for _ in range(4)])
    hidden, seen = (singling_out(own, own.variants, person=person, sizes=[2, 3]).results for person in (False, True))
    for before, after in zip(hidden, seen, strict=True):
        assert (before.guessed.original, before.guessed.released) == (after.guessed.original, after.guessed.released)
        assert before.beyond.value == 0.0 and not before.more
        assert after.guessed.baseline.value == 0.0 and after.more


def test_without_people_of_several_cases_nothing_is_another() -> None:
    visits = [(f"p{i}", trace) for i, trace in enumerate(["ab", "ab", "acd", "abd", "ab", "d", "cd", "acd"] * 3)]
    own, release = log(visits, list(range(24))), log(visits[::2], list(range(0, 24, 2)))
    assert persons_of(own, "Patient") is None and persons_of(log(FEW), "Patient") is not None
    assert persons_of(own.variants, "Patient") is None and persons_of(log(FEW), False) is None
    expected = singling_out(own, release, person=False)
    assert len(expected.results) == 4
    for person in ("Patient", True):
        assert singling_out(own, release, person=person).results == expected.results
    nobody = log([(None, trace) for _, trace in visits], list(range(24)))
    assert singling_out(nobody, release, person="Patient").results == expected.results
    # With people held out it does not matter whose the cases are.
    several = population(20, 1)
    control = population(20, 2)
    held = [singling_out(several, several, control=control, person=p, sizes=[1]).results for p in ("Patient", False)]
    assert held[0] == held[1]


def test_a_column_that_is_none_is_refused() -> None:
    with refused(ParameterError, "person-attribute-missing") as error:
        singling_out(log(FEW), log(FEW), person="Ward")
    assert error.value.parameter == "person"


@pytest.mark.slow
def test_no_value_depends_on_the_order_of_cases() -> None:
    own = population(30, 3)
    days = np.random.default_rng(4).integers(0, 9, own.number_of_cases).tolist()
    visits = list(zip(own.cases.column("Patient").to_pylist(), _traces(own), strict=True))
    timed = log(visits, days)
    mixed = timed.only(np.random.default_rng(5).permutation(len(visits)))
    results = [singling_out(one, timed, person="Patient", sizes=[1, 3], attacks=100).results for one in (timed, mixed)]
    assert results[0] == results[1] and len(results[0]) == 4 and not results[0][0].exact
    ends = [inference(one, timed, person="Patient", sizes=[1, 3]).results for one in (timed, mixed)]
    assert ends[0] == ends[1] and len(ends[0]) == 3
    lists = [linkability(one, timed, person="Patient", sizes=[1], people=20).results for one in (timed, mixed)]
    assert lists[0] == lists[1] and len(lists[0]) == 2


def _traces(of: EventLog) -> list[str]:
    labels, codes = of.activity_codes
    letters = "".join(labels[code] for code in codes.tolist())
    return [letters[first:last] for first, last in itertools.pairwise(of.offsets.tolist())]


def _has(trace: str, known: tuple[str, ...]) -> bool:
    rest = iter(trace)
    return all(label in rest for label in known)


def _by_hand(visits: Visits, size: int, n: int) -> tuple[float, float]:
    """Return the baselines of singling out and guessing by their definitions."""
    alone, guessed, people = 0.0, 0.0, 0
    for case, (person, trace) in enumerate(visits):
        if len(trace) <= size:
            continue
        people += 1
        others_cases = [(p or str(i), t) for i, (p, t) in enumerate(visits) if i != case and (p is None or p != person)]
        left = [t for _, t in others_cases]
        have = len({p for p, t in others_cases if t == trace})
        ways = list(itertools.combinations(trace, size))
        for known in ways:
            there = [t for t in left if _has(t, known)]
            same = there.count(trace)
            others = max(1, len(left))
            alone += n * same / others * (1 - len(there) / others) ** max(0, n - 1) / len(ways)
            if same:
                count = {t: Fraction(there.count(t)) for t in {*there}}
                count[trace] *= Fraction(have + 1, have)
                best = [t for t, number in count.items() if number == max(count.values())]
                guessed += (trace in best) / len(best) / len(ways)
    return alone / people, guessed / people


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.sampled_from("pqrs")), st.text("abc", min_size=1, max_size=4)),
        min_size=2,
        max_size=10,
    ),
    st.integers(1, 3),
    st.integers(1, 5),
)
def test_the_baseline_is_what_its_definition_gives(visits: Visits, size: int, n: int) -> None:
    try:
        (row,) = singling_out(log(visits), variants(abc=n), person="Patient", sizes=[size]).results
    except ParameterError:
        assert all(len(trace) <= size for _, trace in visits)
        return
    assert row.exact and baselines(row) == pytest.approx(_by_hand(visits, size, n))


def test_what_others_tell_of_an_end_is_told_by_other_people() -> None:
    """Others' ends are those of other people, not of the person's other visits.

    Three visits ax of p: without each other, of two ay of others and this one none is right. p's ay: three of three, 1.
    For q's and r's ay there are three ax: 1/2. By cases three are ax and three ay: 1/2 for all.
    """
    own = log([("p", "ax"), ("q", "ay"), ("p", "ax"), ("p", "ay"), ("p", "ax"), ("r", "ay")])
    by_people, by_cases = (inference(own, own, person=p, sizes=[1]).results for p in ("Patient", False))
    assert [row.secret for row in by_people] == ["last activity"]  # Patient is the one attribute, and varies least
    assert by_people[0].guessed.baseline.value == pytest.approx((1 + 2 * 1 / 2) / 6)
    assert by_cases[0].guessed.baseline.value == pytest.approx(1 / 2)


def test_what_people_do_again_is_no_end_that_others_tell() -> None:
    """A person's own repeated cases are no evidence for the end of that person's case."""
    own = log([(f"p{i}", f"{chr(97 + i)}x{'yz'[i % 2]}") for i in range(26) for _ in range(3)])
    hidden, seen = (inference(own, own.variants, person=person, sizes=[1, 2]).results for person in (False, True))
    assert all(row.guessed.baseline.value == 1.0 and not row.more for row in hidden)
    assert all(row.guessed.baseline.value < 0.6 and row.more for row in seen)
    assert [row.guessed.released for row in hidden] == [row.guessed.released for row in seen]


def test_of_ends_too_nothing_is_another_without_people_of_several_cases() -> None:
    traces = ["ab", "ab", "acd", "abd", "ab", "d", "cd", "acd"] * 3
    own, nobody = (log([(p and f"{p}{i}", trace) for i, trace in enumerate(traces)]) for p in ("p", None))
    expected = inference(own, own, person=False).results
    assert inference(own, own, person="Patient").results == inference(own, own).results == expected
    assert inference(nobody, nobody.variants, person="Patient").results == inference(own, own.variants).results
    several, control = population(20, 1), population(20, 2)
    held = [inference(several, several, control=control, person=p, sizes=[1]).results for p in ("Patient", False)]
    assert held[0] == held[1]


def _ends_by_hand(visits: Visits, size: int) -> float:
    """Return the baseline of guessed ends by definition, the better of two guesses."""
    known, nothing, people = 0.0, 0.0, 0
    for case, (person, trace) in enumerate(visits):
        if len(trace) <= size:
            continue
        people += 1
        left = [(p or str(i), t) for i, (p, t) in enumerate(visits) if i != case and (p is None or p != person)]
        chances = []
        for depth in range(size, -1, -1):
            ends = [(p, t[-1]) for p, t in left if t[:depth] == trace[:depth] and len(t) > depth]
            count = {end: Fraction(sum(other == end for _, other in ends)) for _, end in ends}
            have, right = len({p for p, end in ends if end == trace[-1]}), 0.0
            if have:
                count[trace[-1]] *= Fraction(have + 1, have)
                best = [end for end, number in count.items() if number == max(count.values())]
                right = (trace[-1] in best) / len(best)
            chances.append((len(ends) > 0, right))
        known += next((right for others, right in chances if others), 0.0)
        nothing += chances[-1][1] if chances[-1][0] else 0.0
    return max(known, nothing) / people


@pytest.mark.nightly
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.sampled_from("pqrs")), st.text("abc", min_size=1, max_size=4)),
        min_size=2,
        max_size=14,
    ),
    st.integers(1, 3),
)
def test_what_others_tell_of_ends_is_what_its_definition_gives(visits: Visits, size: int) -> None:
    try:
        row = inference(log(visits), variants(abc=1), person="Patient", sizes=[size]).results[0]
    except ParameterError:
        assert all(len(trace) <= size for _, trace in visits)
        return
    assert row.guessed.baseline.value == pytest.approx(_ends_by_hand(visits, size))


def test_lists_are_of_people_and_matched_by_others() -> None:
    """Lists have one case of each of three people, matched by others' cases.

    p: without the other visit no one else has ab: 1/3. q: without the other one, r and this one have cd, and two rows
    of the second list are d: 1/2. r: so it is of three: 1/2. By cases five are in the lists, of two with ab 1/2 each is
    right, and of three with cd 1/3 each.
    """
    own = log([("p", "ab"), ("q", "cd"), ("p", "ab"), ("r", "cd"), ("q", "cd")])
    by_people, by_cases = (
        linkability(own, own.variants, person=person, sizes=[1]).results[0] for person in ("Patient", False)
    )
    assert by_people.people == 3 and by_people.linked.released.value == pytest.approx(2 / 3)
    assert by_people.linked.baseline.value == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert by_cases.people == 5 and by_cases.linked.baseline.value == pytest.approx(2 / 5)


def test_rows_that_a_persons_other_visits_matched_are_no_guess_from_others() -> None:
    own = log([(f"p{i}", f"{chr(0x100 + i)}{chr(0x200 + i)}") for i in range(60) for _ in range(4)])
    hidden, seen = (linkability(own, own.variants, person=person, sizes=[1]).results[0] for person in (False, True))
    assert hidden.beyond.value == 0.0 and not hidden.more
    assert seen.people == 60 and seen.linked.released.value == 1.0 and seen.more
    assert seen.linked.baseline.value == pytest.approx(1 / 60)


def test_in_lists_too_nothing_is_another_without_people_of_several_cases() -> None:
    own = log([(f"p{i}", trace) for i, trace in enumerate(["ab", "ab", "acd", "abd", "ab", "d", "cd", "acd"] * 3)])
    expected = linkability(own, own, person=False).results
    assert linkability(own, own, person="Patient").results == linkability(own, own).results == expected
    several, control = population(20, 1), population(20, 2)
    held = [linkability(several, several, control=control, person=p).results for p in ("Patient", False)]
    assert held[0] == held[1]


@pytest.mark.nightly
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("pqrs"), st.text("abc", min_size=2, max_size=4)), min_size=3, max_size=14),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_lists_are_matched_as_by_a_log_without_the_persons_other_cases(visits: Visits, size: int, seed: int) -> None:
    own = log(visits)
    whose = persons_of(own, "Patient")
    if whose is None:
        return
    held = _group_by_activities(size, whose, own, own, None).original
    assert held.owner is not None
    people = held.people(of_attributes=False)
    assert people == len({person for person, _ in visits})
    lists = _draw_lists(held, False, size, people, np.random.default_rng(seed))
    assert sorted(held.owner[lists.group].tolist()) == list(range(people))
    right, both = _match_by_others(lists, held, held.owner)
    traces = own.variants.sequences
    for i, group in enumerate(lists.group.tolist()):
        mine = np.flatnonzero(whose == held.owner[group])
        one = next(case for case in mine.tolist() if tuple(visits[case][1]) == tuple(traces[held.group[group]]))
        left = own.only(np.setdiff1d(np.arange(len(visits)), mine[mine != one]))
        # The activities of both logs are numbered alike.
        expected = _match_chances(lists, [_group_by_activities(size, None, own, left, None).released])
        assert (right[i], both[i]) == (pytest.approx(expected[0][i]), expected[1][i])


def test_what_people_win_and_lose_together_makes_the_interval_wider() -> None:
    """Wins and losses that cancel within traces still widen the interval by people."""
    gain, weight = np.array([1.0, -1.0, 1.0, -1.0]), np.full(4, 0.25)
    trace, person = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert paired_gain(gain, weight, trace, 4).high == pytest.approx(Z_BEYOND / 4)
    # By people 1/2 and by both 1/4, which is less than by people alone. Ten times each: 1/20, of 20 people 1/20^2.
    often = np.repeat(np.arange(10), 4)
    many = [np.tile(values, 10) for values in (gain, weight / 10, trace, person)]
    by_people = paired_gain(many[0], many[1], many[2] + 2 * often, 40, many[3] + 2 * often)
    assert by_people.high == pytest.approx(Z_BEYOND * (1 / 20 + 1 / 20**2) ** 0.5)
    # Of 20 people and 20 traces half win 1/2 and half lose it: each way 20 * (1/40)^2, and both 200 * (1/400)^2.
    half = np.where(np.arange(20) % 2, -0.5, 0.5)
    gain, of_each = (half[:, None] + half[None, :]).ravel(), np.arange(20)
    found = paired_gain(gain, np.full(400, 1 / 400), np.repeat(of_each, 20), 400, np.tile(of_each, 20))
    assert found.value == pytest.approx(0.0)
    assert found.high == pytest.approx(Z_BEYOND * (2 * 20 / 40**2 - 200 / 400**2 + 1 / 20**2) ** 0.5)


@pytest.mark.nightly
@pytest.mark.parametrize("attack", [singling_out, inference, linkability])
def test_a_release_of_other_people_is_not_blamed_for_what_people_do_again(attack: Any) -> None:
    """In 200 releases from the log's population, 1 in 400 rows may be above by chance."""
    rows: list[Knowledge | Inferred | Linked] = []
    for seed in range(200):
        people = (10, 30, 80)[seed % 3]
        like = (0.5, 0.8, 1.0)[seed // 3 % 3]
        own, release = population(people, seed, like, length=3), population(people, 1000 + seed, like, length=3)
        rows += attack(own, release.variants, person="Patient", sizes=[1, 2]).results
    assert len(rows) == 400 and sum(row.more for row in rows) <= 4  # more than that by 1 in 250 such tests
    gains = np.array([row.beyond.value for row in rows])
    assert -0.15 < gains.mean() < 0.0  # the baseline is no weaker than such a release, and not much stronger


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("attack", [singling_out, inference, linkability])
def test_a_release_of_other_people_is_not_blamed_where_two_ends_are_as_frequent(attack: Any) -> None:
    """The same holds for few people with four visits each and equally frequent traces."""
    rows: list[Knowledge | Inferred | Linked] = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own, release = (
            log([(f"p{i}", trace) for i in range(12) for trace in [str(rng.choice(["abx", "aby", "acx", "acy"]))] * 4])
            for _ in range(2)
        )
        rows += attack(own, release.variants, person="Patient", sizes=[1, 2]).results
    assert len(rows) == 400 and sum(row.more for row in rows) <= 4


@pytest.mark.slow
def test_compare_hears_whose_the_cases_are() -> None:
    own = population(40, 6, like=1.0, length=6)
    told, guessed, not_asked = (
        compare(own, own.variants, models=False, asked=UseCaseOptions(person=person))
        for person in ("Patient", True, False)
    )
    assert told.singling_out is not None and guessed.singling_out is not None and not_asked.singling_out is not None
    assert told.singling_out.results == guessed.singling_out.results
    assert any(row.more for row in told.singling_out.results)
    assert not any(row.more for row in not_asked.singling_out.results)


@pytest.mark.slow
def test_dossiers_and_reports_hear_whose_the_cases_are() -> None:
    own = population(40, 6, like=1.0, length=6)
    publish = veilog.release(own, "tlkc", as_published=True, k=1, l=1)
    for person, more in (("Patient", True), (True, True), (False, False)):
        singled = dossier_facts(publish, own, person=person)["attacked"]["tried"][0]
        assert any(row.more for row in singled.results) is more
        facts = gather_facts(facts_of_release(publish), publish, own, person=person)
        assert facts.inside is not None and facts.inside.comparison is not None
        found = facts.inside.comparison.singling_out
        assert found is not None and any(row.more for row in found.results) is more
