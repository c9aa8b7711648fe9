"""Single queries about events, audited from inside as releases ask them.

They are about pairs of values in events, durations of events, events that begin before the one before them ended, the
hours at which cases start, whole units of times, and decimals of numbers.

A release is made whole. Only one of its queries is asked again, with a fault or without, so that nothing else of the
release covers it. The added or removed case has many more events than count, all alike.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np
import openly
import pyarrow as pa
import pytest

from veilog import Domain
from veilog.audits import twin_curator
from veilog.audits.attacks import Attempt
from veilog.audits.bounds import evidence_of_maximum
from veilog.audits.twin_curator import AuditRun, RecordedCall, RecordedRun, Recorder, Script, Twins, replay_run
from veilog.audits.whitebox import WhiteProof, prove
from veilog.logs.eventlog import START, TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.privacy import cases, events
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.contributions import contributions, noise_of_sums
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import CubeNoise, Laplace
from veilog.releasing.request import ReleaseRequest

CASES, LONG = 200, 300
RUNS = 700


def teams(long: bool) -> EventLog:
    """Return cases that change between two teams of a product, perhaps a long one too.

    The long case has very many events of one team.
    """
    rng, rows = np.random.default_rng(4), []
    for case in range(CASES):
        product = int(rng.integers(3))
        names = ("open", *["work"] * 8, "end")
        rows += [(case, name, product, 2 * product + int(rng.integers(2))) for name in names]
    if long:
        rows += [(CASES, "work", 0, 0)] * LONG
    case, name, product, team = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "case:index": pa.array(case, pa.int64()),
        "event:index": pa.array(range(len(case)), pa.int64()),
        "concept:name": pa.array(name),
        "time:timestamp": pa.array([None] * len(case), TIMESTAMP_TYPE),
        "product": pa.array([f"p{i}" for i in product]),
        "team": pa.array([f"t{i}" for i in team]),
        "dose": pa.array([float(i) for i in team]),
    }
    return EventLog(pa.table(columns), pa.table({"concept:name": [str(i) for i in range(CASES + long)]}))


def started(long: bool, *, at_once: bool = False) -> EventLog:
    """Return the same cases with times, each event a minute long and after the last.

    Events of the very long case take two minutes, so that all but its first begin before the event before them ended.
    Its events may end all ``at_once``.
    """
    log = teams(long)
    case = log.events.column("case:index").to_numpy()
    minutes = np.arange(len(case))
    if long and at_once:
        minutes[case == CASES] = minutes[case == CASES][0]
    ended = (minutes * 60 + 1_700_000_040) * 1_000_000
    began = ended - np.where(case == CASES, 120, 60) * 1_000_000
    columns = {"time:timestamp": ended, START: began}
    for name, micros in columns.items():
        column = pa.array(micros).cast(TIMESTAMP_TYPE)
        place = log.events.column_names.index(name) if name in log.events.column_names else len(log.events.column_names)
        kept = log.events.remove_column(place) if name in log.events.column_names else log.events
        log = replace(log, events=kept.add_column(place, name, column))
    return log


MARKS = {f"mark {bit}": ("0", "1") for bit in range(8)}
FEW = 32


def marked(there: bool) -> EventLog:
    """Return cases with attributes in all combinations, and perhaps one case more."""
    marks = [[str(i >> bit & 1) for i in range(FEW + there)] for bit in range(len(MARKS))]
    numbers = range(FEW + there)
    events = {
        "case:index": pa.array(numbers, pa.int64()),
        "event:index": pa.array(numbers, pa.int64()),
        "concept:name": pa.array(["open"] * len(numbers)),
        "time:timestamp": pa.array([None] * len(numbers), TIMESTAMP_TYPE),
    }
    columns = {f"mark {bit}": pa.array(values) for bit, values in enumerate(marks)}
    return EventLog(pa.table(events), pa.table({"concept:name": [str(i) for i in numbers], **columns}))


def going(there: bool) -> EventLog:
    """Cases of three products that have some of two activities; perhaps one case more."""
    paths = [("open", *("work",) * (i // 3 % 2), *("end",) * (i // 6 % 2)) for i in range(2 * CASES + there)]
    rows = [(case, name) for case, path in enumerate(paths) for name in path]
    case, name = (list(column) for column in zip(*rows, strict=True))
    columns = {
        "case:index": pa.array(case, pa.int64()),
        "event:index": pa.array(range(len(case)), pa.int64()),
        "concept:name": pa.array(name),
        "time:timestamp": pa.array([None] * len(case), TIMESTAMP_TYPE),
    }
    products = pa.array([f"p{i % 3}" for i in range(len(paths))])
    names = pa.array([str(i) for i in range(len(paths))])
    return EventLog(pa.table(columns), pa.table({"concept:name": names, "product": products}))


DOMAIN = Domain(
    ("open", "work", "end"),
    LONG,
    attributes={
        "product": tuple(f"p{i}" for i in range(3)),
        "team": tuple(f"t{i}" for i in range(6)),
        "dose": (0.0, 9.0),
    },
)
ATTRIBUTES = openly.planned(
    "df-laplace", epsilon=20, domain=DOMAIN, attributes=["product", "team"], attributes_share="0.8"
)
PATHS = openly.planned("df-laplace", epsilon="1.5", domain=DOMAIN, attributes=["product"], attributes_share="0.5")
NUMBERS = openly.planned("df-laplace", epsilon=40, domain=DOMAIN, attributes=["dose"], attributes_share="0.8")
TIMES = openly.planned("df-laplace", epsilon=50, domain=DOMAIN, times="0.8")
STARTS = openly.planned("df-laplace", epsilon=20, domain=DOMAIN, times="0.8", processing=True)
CHOICES = openly.planned(
    "df-laplace",
    epsilon=400,
    domain=Domain(("open",), 1, attributes=MARKS),
    attributes=[*MARKS],
    attributes_share="0.8",
)


@dataclass(frozen=True)
class Question:
    """A query to audit: the code of its purpose, its release, and the two logs."""

    purpose: str
    planned: ReleaseRequest
    pair: Attempt
    least: float
    """Smallest share of its charge that an audit can see."""
    charged: float = 0.9
    """Epsilon that its charge exceeds."""
    runs: int = RUNS
    """Number of runs; a choice reveals most by its rarest outcome, so it takes many."""
    kind: str = "event sums"


LOGS = Attempt("a case of very many events of one team", teams(False), teams(True), ())
STARTED = Attempt("a case of very many long events", started(False), started(True), ())
AT_ONCE = Attempt("a case of very many events at once", started(False), started(True, at_once=True), ())
GOING = Attempt("a case more with two activities", going(False), going(True), ())
MARKED = Attempt("a case more with the same attributes", marked(False), marked(True), ())
QUESTIONS = {
    "together": Question("values-by-other-per-event", ATTRIBUTES, LOGS, 0.6),
    "signs": Question("values-by-activities", PATHS, GOING, 0.8, 0.5, 16_000, "event cube sums"),
    "processing": Question("how-long-events-take-by-activity", STARTS, STARTED, 0.6),
    "overlaps": Question("events-overlapping", STARTS, STARTED, 0.3),
    "hours": Question("hours-and-weekdays", TIMES, AT_ONCE, 0.5),
    "unit": Question("cases-with-whole-times", TIMES, STARTED, 0.6),
    "decimals": Question("decimals-of", NUMBERS, LOGS, 0.3, charged=0.3),
    "choice": Question("asked-most-telling-pair", CHOICES, MARKED, 0.8, runs=100_000, kind="most apart"),
}


def code_of(purpose: str | Message) -> str:
    """Return the code of a purpose; that of several numbers holds it as a value."""
    if isinstance(purpose, str):
        return purpose
    inner = [value for value in purpose.values.values() if isinstance(value, Message)]
    return code_of(inner[0]) if inner else purpose.code


BEHIND, BEHIND_FAULTY = 8.5, 2.0
"""Number of noise scales by which all tables but one are behind, because rare outcomes reveal most. Less noise than
claimed would make that too rare."""


def rivals(call: RecordedCall, behind: float) -> RecordedCall:
    """Return the choice of a table that a case reveals most by, with its expectations.

    Of the first table more is expected than there is, so the case lowers its score by 1. Of the others nothing is, so
    the case raises theirs.
    """
    of_pairs, expected, _, epsilon = call.given
    tables = [np.full_like(expected[0], FEW), *(np.zeros_like(table) for table in expected[1:])]
    # Every case is in one cell of each: so the first score is 0, and the others are as far behind.
    less = [FEW * len(tables[0]) - FEW, *[FEW + round(behind * 2 / float(epsilon))] * (len(tables) - 1)]
    return replace(call, given=(of_pairs, tables, less, epsilon))


@lru_cache
def worked_out(mechanism: Any, answer: int, without: tuple[int, ...], with_: tuple[int, ...]) -> float:
    return evidence_of_maximum(mechanism, answer, without, with_)


def evidence_once(mechanism: Any, answer: int, without: Any, with_: Any) -> float:
    """Return the evidence of an answer, computed once for the few answers there are."""
    return worked_out(mechanism, answer, tuple(without.tolist()), tuple(with_.tolist()))


@dataclass(frozen=True)
class OfOneQuestion(Recorder):
    """Recorder of the answers to one query alone."""

    purpose: str = ""
    fault: tuple[Any, str, Any] | None = None

    def _asked(self, run: AuditRun) -> tuple[Script, Twins]:
        key = (run.attempt.attack, run.there, run.seed, run.questions)
        if key not in self.made:
            whole, script, twins = run.on(self.planned)
            ours = [call for call in script.calls if code_of(call.named.get("purpose", "")) == self.purpose]
            if ours[0].name == "most_apart":
                ours = [rivals(ours[0], BEHIND_FAULTY if self.fault else BEHIND)]
            assert len(ours) == 1
            self.made[key] = whole, replace(script, calls=tuple(ours), exact={}), twins
        return self.made[key][1:]

    def whole(self, run: AuditRun) -> RecordedRun:
        return self.again(run, run.there, [run.seed])[0]

    def again(self, run: AuditRun, with_: bool, seeds: Sequence[int]) -> list[RecordedRun]:
        script, twins = self._asked(run)
        log = run.attempt.with_ if with_ else run.attempt.without
        with (
            mock.patch.object(*self.fault) if self.fault else nullcontext(),
            mock.patch.object(twin_curator, "evidence_of_maximum", evidence_once),
        ):
            return [replay_run(self.planned, twins, script, log, with_, seed) for seed in seeds]


def audited(name: str, fault: tuple[Any, str, Any] | None = None, rarely: int = 1) -> WhiteProof:
    """Audit a query, with a planted fault or not, on all its runs or every n-th."""
    asked = QUESTIONS[name]
    runs = asked.runs // rarely
    recorder = OfOneQuestion(asked.planned, lambda text, fraction: None, None, 1, purpose=asked.purpose, fault=fault)
    seeds = np.random.SeedSequence(1)
    return prove(recorder, [asked.pair], runs, 0.0, 0.99, seeds, lambda text, fraction: None)


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_question_keeps_what_is_charged_for_it_and_the_audit_is_sharp(name: str) -> None:
    found = audited(name)
    assert QUESTIONS[name].least < found.factor <= 1 and not found.faults
    ((charged,),) = (part.asked for part in found.shape)
    assert charged.question == QUESTIONS[name].kind and charged.epsilon > QUESTIONS[name].charged


def unclipped(triples: Any, n: int, bound: int, resolution: int, norm: Any = "L1") -> Any:
    """Clip nothing."""
    return contributions(triples, n, 10**6, resolution, norm)


def a_half_more(triples: Any, n: int, bound: int, resolution: int, norm: Any = "L1") -> Any:
    """Let a case add a half more than the noise covers."""
    return contributions(triples, n, bound + -(-bound // 2), resolution, norm)


def halved(self: Laplace, n: int, source: noise.Randomness) -> Any:
    """Draw noise of half the scale."""
    return noise.discrete_laplace(2 * self.decay, n, source)


def halved_cubes(self: CubeNoise, n: int, source: noise.Randomness) -> Any:
    """Noise of half the scale."""
    return noise.cubes(2 * self.decay, self.width, n // self.width, source).reshape(-1)


def for_one_event(bound: int, resolution: int, epsilon: Any, delta: Any) -> Any:
    """Return noise for one event a case, whatever the bound."""
    return noise_of_sums(1, resolution, epsilon, delta)


def uncharged(self: ChargeAccount, question: str, purpose: str | Message, mechanism: Any, *rest: Any) -> Any:
    """Answer the query uncharged; its purpose may stand in that of several sums."""
    within = purpose.values.values() if isinstance(purpose, Message) else ()
    codes = {code_of(one) for one in (purpose, *within) if isinstance(one, str | Message)}
    audited = codes & {one.purpose for one in QUESTIONS.values()}
    return mechanism if audited else charge(self, question, purpose, mechanism, *rest)


charge = ChargeAccount.charge
FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "clip missing": (cases, "contributions", unclipped),
    "sensitivity too small": (cases, "contributions", a_half_more),
    "half the noise": (Laplace, "draw", halved),
    "half the noise of cubes": (CubeNoise, "draw", halved_cubes),
    "noise for one event": (events, "noise_of_sums", for_one_event),
    "not charged": (ChargeAccount, "charge", uncharged),
}


PLANTED = [
    *(("together", fault) for fault in FAULTS if fault != "half the noise of cubes"),
    *(("processing", fault) for fault in ("clip missing", "half the noise", "not charged")),
    *((name, fault) for name in ("hours", "unit", "decimals") for fault in ("half the noise", "not charged")),
    ("decimals", "clip missing"),
    *(("signs", fault) for fault in ("half the noise of cubes", "not charged")),
    *(("choice", fault) for fault in ("half the noise", "not charged")),
    ("overlaps", "half the noise"),  # what a case shares out never has to be clipped
]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "fault"), PLANTED)
def test_a_planted_fault_is_caught(name: str, fault: str) -> None:
    # A missing charge shows in any run, but the frequency of answers only in many.
    found = audited(name, FAULTS[fault], 1 if fault != "not charged" else 10)
    if fault == "not charged":
        assert "audit-fault-uncharged" in [fault.code for fault in found.faults]
    else:
        assert max(found.factor, found.free.epsilon / found.shape[0].asked[0].epsilon) > 1
