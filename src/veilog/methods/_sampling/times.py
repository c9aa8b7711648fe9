"""Amun's timestamp noise and compression: noisy relative times, put together within the public time frame.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), sections 3.6 and 3.7,
Algorithm 1, lines 26 and 27.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Sequences
from veilog.methods._sampling.transitions import AnnotatedLog, Frame, events_of
from veilog.privacy.mechanisms import noise

__all__ = ["Draws", "Noisy", "compressed", "noisy_cases", "noisy_steps", "times_within"]


_SECOND = 1_000_000
_FINENESS = 2**32
_BLOCK = 2**20
"""Events whose noise is drawn at once."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Released cases with noise on their times, not yet compressed; the events of case ``i`` are ``begins[i]`` up to
    ``begins[i + 1]``."""

    rows: IntArray
    """Of each event, which of the log's it was."""
    begins: IntArray
    starts: FloatArray
    """Of each case, microseconds; they may lie outside the frame."""
    steps: IntArray
    """Of each event, whole seconds since the event before it; 0 for the first of a case."""


class Draws:
    """Laplace noise of scale 1 for so many events, in blocks, so that whoever takes it piece by piece gets what they
    would get at once.

    To a grid of 2**-32: discrete Laplace numbers from the exact sampler. Scaled by a range of up to a century the grid
    stays finer than the whole seconds that are released.
    """

    def __init__(self, events: int, source: noise.Randomness) -> None:
        self._to_come = events
        self._source = source
        self._drawn: FloatArray = np.zeros(0)

    def take(self, n: int) -> FloatArray:
        parts: list[FloatArray] = [np.zeros(0)]
        while n > 0:
            if not len(self._drawn):
                block = min(_BLOCK, self._to_come)
                assert block > 0, "more draws are taken than there are events"
                self._drawn = noise.discrete_laplace(Fraction(1, _FINENESS), block, self._source) / _FINENESS
                self._to_come -= block
            parts.append(self._drawn[:n])
            self._drawn = self._drawn[n:]
            n -= len(parts[-1])
        return np.concatenate(parts)


def noisy_cases(
    log: AnnotatedLog, copies: IntArray, scales: FloatArray, frame: Frame, source: noise.Randomness
) -> tuple[Sequences, IntArray]:
    """The released cases with the times of their events (microseconds, whole seconds).

    Every relative time gets Laplace noise of ``scales`` (range / epsilon, by event) times the copies of its case: so
    often is the same value released (Algorithm 1, line 26). No time between events is negative, or longer than the
    frame.

    Compression, from public facts and noisy values: case starts are shrunk, if they spread further than the public
    ones, and moved to lie between them; the times within a case are shrunk if it would end after the public end.
    """
    noisy = noisy_steps(log, copies, scales, frame, Draws(int((copies * log.lengths).sum()), source))
    times = times_within(compressed(noisy.starts, frame), noisy.steps, noisy.begins, frame)
    return Sequences(log.automaton.labels, log.codes[noisy.rows].astype(np.int32), noisy.begins), times


def noisy_steps(log: AnnotatedLog, copies: IntArray, scales: FloatArray, frame: Frame, draws: Draws) -> Noisy:
    """The first half of :func:`noisy_cases`, which needs no other cases: noise on starts and on times between events.

    The log may be a piece of a larger one, with the next draws for that.
    """
    cases = np.repeat(np.arange(len(log)), copies)
    rows, begins = events_of(log.offsets, cases)
    drawn = draws.take(len(rows)) * scales[rows] * np.repeat(copies[cases], np.diff(begins))
    longest = max(0, frame.last - frame.first)
    durations = np.clip(log.durations[rows] + drawn, 0, longest)
    durations[begins[:-1]] = 0
    steps = np.rint(durations / _SECOND).astype(np.int64)
    return Noisy(rows, begins, log.starts[cases] + drawn[begins[:-1]], steps)


def times_within(starts: IntArray, steps: IntArray, begins: IntArray, frame: Frame) -> IntArray:
    """The other half: times of events (microseconds) from the compressed starts of cases and the steps within them
    (seconds), by case alone."""
    elapsed = _sums_within(steps, begins)
    room = np.maximum(frame.last // _SECOND - starts, 0)
    total = elapsed[begins[1:] - 1]
    shrink = np.minimum(1.0, room / np.maximum(total, 1))
    lengths = np.diff(begins)
    times: IntArray = np.repeat(starts, lengths) + np.floor(elapsed * np.repeat(shrink, lengths)).astype(np.int64)
    return times * _SECOND


def compressed(starts: FloatArray, frame: Frame) -> IntArray:
    """Noisy starts between the public first and last one, in seconds."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    room = float(frame.last_start - frame.first)
    lowest, spread = float(starts.min()), float(np.ptp(starts))
    if spread > room:
        starts = frame.first + (starts - lowest) * (room / spread)
    else:
        starts = starts + max(0.0, frame.first - lowest) - max(0.0, lowest + spread - frame.last_start)
    whole: IntArray = np.floor(np.clip(starts, frame.first, frame.last_start) / _SECOND).astype(np.int64)
    return whole


def _sums_within(values: IntArray, begins: IntArray) -> IntArray:
    """Running sums that begin anew with every case; every case has an event."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=sums[1:])
    running: IntArray = sums[1:] - np.repeat(sums[begins[:-1]], np.diff(begins))
    return running
