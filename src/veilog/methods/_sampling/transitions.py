"""Amun's view of a log: every event with its transition of the minimal automaton, and its relative time.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), section 3.2 and
Definition 3.5. Numbers in arrays; nothing loops over cases or events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.dafsa import Dafsa, dafsa
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Sequences, Variants
from veilog.methods._rows import rows_of
from veilog.privacy.cases import UNKNOWN_TIME, RawCases
from veilog.privacy.domain import Domain

LARGEST_RELEASE = 100_000_000
"""Events; more would not fit in memory, and only a tiny guessing advantage asks for more."""


@dataclass(frozen=True)
class Frame:
    """What the attack model takes as public: the smallest and the largest time of the log, in microseconds. Cases start
    from the first one on; ``last_start`` is the latest of these starts."""

    first: int
    last_start: int
    last: int


@dataclass(frozen=True, eq=False)
class AnnotatedLog:
    """Cases with at least one event; the events of case ``i`` are ``offsets[i]`` up to ``offsets[i + 1]``."""

    automaton: Dafsa
    codes: IntArray
    """Of each event, its activity."""
    offsets: IntArray
    transitions: IntArray
    """Of each event, the transition that it takes."""
    variants: IntArray
    """Of each case, the number of its variant (its place among the automaton's sequences)."""
    starts: IntArray
    """Of each case, the time of its first event in microseconds."""
    durations: IntArray
    """Of each event, microseconds since the event before it; 0 for the first event of a case."""

    def __len__(self) -> int:
        """Number of cases."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The case of each event."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def copied(self, copies: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Each case so often: the cases one after the other, the rows of their events, and where each case begins."""
        cases = np.repeat(np.arange(len(self)), copies)
        return cases, *rows_of(self.offsets, cases)

    @property
    def opens(self) -> BoolArray:
        """Whether an event is the first of its case: it then starts from state 0, and its time is the case's start."""
        opening: BoolArray = self.automaton.sources[self.transitions] == 0
        return opening

    @property
    def contingency(self) -> IntArray:
        """Of each transition, how many events take it, which is how many cases do (Definition 3.10)."""
        return np.bincount(self.transitions, minlength=len(self.automaton))

    def only(self, cases: IntArray) -> AnnotatedLog:
        """These cases, in the order given; the automaton and the numbers of variants stay."""
        rows, offsets = rows_of(self.offsets, cases)
        return replace(
            self,
            codes=self.codes[rows],
            offsets=offsets,
            transitions=self.transitions[rows],
            variants=self.variants[cases],
            starts=self.starts[cases],
            durations=self.durations[rows],
        )


def annotated(log: EventLog, variants: Variants, domain: Domain) -> tuple[AnnotatedLog, Frame, int, int]:
    """The log with its automaton, its public time frame, and how many cases without events were left out and how many
    events were earlier than the one before them (their duration counts as 0)."""
    raw, automaton = RawCases(log, domain), dafsa(variants.sequences)
    unknown, events = int((raw.times == UNKNOWN_TIME).sum()), len(raw.times)
    if unknown:
        raise InputError("amun-without-times" if unknown == events else "amun-times-missing", unknown=unknown)
    if events == 0:
        raise InputError("amun-log-without-events")
    labels, times = automaton.labels, raw.times
    codes = np.concatenate([block.codes for block in raw.blocks(labels)])
    transitions = automaton.annotate(Sequences(labels, codes.astype(np.int32), raw.offsets))
    going = np.flatnonzero(np.diff(raw.offsets) > 0)
    firsts = raw.offsets[:-1][going]
    durations = np.zeros(len(times), dtype=np.int64)
    durations[1:] = np.diff(times)
    durations[firsts] = 0
    found = AnnotatedLog(
        automaton=automaton,
        codes=codes,
        offsets=np.append(firsts, len(times)),
        transitions=transitions,
        variants=automaton.numbers(raw.offsets, transitions)[going],
        starts=times[firsts],
        durations=np.maximum(durations, 0),
    )
    frame = Frame(int(times.min()), int(found.starts.max()), int(times.max()))
    return found, frame, len(raw.offsets) - 1 - len(found), int((durations < 0).sum())
