"""What changes within cases is asked together with another attribute of its event: this question by itself, audited
from inside as releases ask it.

A release is made whole; of what it asked only this question is asked again, with a fault or without, so that nothing
else of the release covers one. The case that is there or not has many more events than count, all with the same two
values.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import openly
import pyarrow as pa
import pytest

from veilog import Domain
from veilog.audits.attacks import Attempt
from veilog.audits.many_runs import Recorder, Run
from veilog.audits.recording import Recorded, Script, asked_again
from veilog.audits.twins import Twins
from veilog.audits.whitebox import WhiteProof, prove
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.privacy import adding, events
from veilog.privacy.account.account import Account
from veilog.privacy.clipping import contributions, noise_of_sums
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace

WORDS = "event by event"
CASES, LONG = 200, 300
RUNS = 700


def teams(long: bool) -> EventLog:
    """Each product has two teams, and cases go from one to the other; perhaps one case with very many events of one."""
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
    }
    return EventLog(pa.table(columns), pa.table({"concept:name": [str(i) for i in range(CASES + long)]}))


PAIR = Attempt("a case of very many events of one team", teams(False), teams(True), ())
DOMAIN = Domain(
    ("open", "work", "end"),
    LONG,
    attributes={"product": tuple(f"p{i}" for i in range(3)), "team": tuple(f"t{i}" for i in range(6))},
)
PLANNED = openly.planned(
    "df-laplace", epsilon=20, domain=DOMAIN, attributes=["product", "team"], attributes_share="0.8"
)


@dataclass(frozen=True)
class OfOneQuestion(Recorder):
    """Records what releases are answered to this question alone."""

    fault: tuple[Any, str, Any] | None = None

    def _asked(self, run: Run) -> tuple[Script, Twins]:
        key = (run.attempt.attack, run.there, run.seed, run.questions)
        if key not in self.made:
            whole, script, twins = run.on(self.planned)
            ours = [call for call in script.calls if WORDS in call.named.get("purpose", "")]
            assert len(ours) == 1
            self.made[key] = whole, replace(script, calls=tuple(ours), exact={}), twins
        return self.made[key][1:]

    def whole(self, run: Run) -> Recorded:
        return self.again(run, run.there, [run.seed])[0]

    def again(self, run: Run, with_: bool, seeds: Sequence[int]) -> list[Recorded]:
        script, twins = self._asked(run)
        log = run.attempt.with_ if with_ else run.attempt.without
        with mock.patch.object(*self.fault) if self.fault else nullcontext():
            return [asked_again(self.planned, twins, script, log, with_, seed) for seed in seeds]


def audited(fault: tuple[Any, str, Any] | None = None, runs: int = RUNS) -> WhiteProof:
    recorder = OfOneQuestion(PLANNED, lambda text, fraction: None, None, 1, fault=fault)
    seeds = np.random.SeedSequence(1)
    return prove(recorder, [PAIR], runs, 0.0, 0.99, seeds, lambda text, fraction: None)


@pytest.mark.slow
def test_the_question_keeps_what_is_charged_for_it_and_the_audit_is_sharp() -> None:
    found = audited(runs=2 * RUNS)
    assert 0.6 < found.factor <= 1 and not found.faults
    ((charged,),) = (part.asked for part in found.shape)
    assert charged.question == "event sums" and charged.epsilon > 0.9


def unclipped(triples: Any, n: int, bound: int, resolution: int, norm: Any = "L1") -> Any:
    """Nothing is clipped."""
    return contributions(triples, n, 10**6, resolution, norm)


def a_half_more(triples: Any, n: int, bound: int, resolution: int, norm: Any = "L1") -> Any:
    """A case may add a half more than the noise is made for."""
    return contributions(triples, n, bound + -(-bound // 2), resolution, norm)


def halved(self: Laplace, n: int, source: noise.Randomness) -> Any:
    """Noise of half the scale."""
    return noise.discrete_laplace(2 * self.decay, n, source)


def for_one_event(bound: int, resolution: int, epsilon: Any, delta: Any) -> Any:
    """Noise for one event a case, whatever the bound."""
    return noise_of_sums(1, resolution, epsilon, delta)


def uncharged(self: Account, question: str, purpose: str, mechanism: Any, *rest: Any) -> Any:
    """The question is answered for nothing."""
    return mechanism if WORDS in purpose else charge(self, question, purpose, mechanism, *rest)


charge = Account.charge
FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "clip missing": (adding, "contributions", unclipped),
    "sensitivity too small": (adding, "contributions", a_half_more),
    "half the noise": (Laplace, "draw", halved),
    "noise for one event": (events, "noise_of_sums", for_one_event),
    "not charged": (Account, "charge", uncharged),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    found = audited(FAULTS[name])
    if name == "not charged":
        assert "a question was answered and nothing was charged for it" in found.faults
    else:
        assert max(found.factor, found.free.epsilon / found.shape[0].asked[0].epsilon) > 1
