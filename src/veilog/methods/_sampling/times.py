"""Amun's timestamp noise and compression: noisy relative times, put together within the public time frame.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), sections 3.6 and 3.7,
Algorithm 1, lines 26 and 27.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Sequences
from veilog.methods._sampling.transitions import AnnotatedLog, Frame
from veilog.privacy.mechanisms import noise

Numbers = TypeVar("Numbers", IntArray, FloatArray)
_SECOND = 1_000_000
_FINENESS = 2**32
_BLOCK = 2**20
"""Events whose noise is drawn at once."""
_LATEST = (2**63 - 1) // 1000
"""The last time, in microseconds, that the authors' program can write: later ones become it."""


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
    cases, rows, begins = log.copied(copies)
    drawn = _drawn(len(rows), source) * scales[rows] * np.repeat(copies[cases], np.diff(begins))
    durations = np.clip(log.durations[rows] + drawn, 0, max(0, frame.last - frame.first))
    durations[begins[:-1]] = 0
    starts = _compressed(log.starts[cases] + drawn[begins[:-1]], frame)
    times = _times_within(starts, np.rint(durations / _SECOND).astype(np.int64), begins, frame)
    return Sequences(log.automaton.labels, log.codes[rows].astype(np.int32), begins), times


def program_cases(
    log: AnnotatedLog, copies: IntArray, scales: FloatArray, source: noise.Randomness
) -> tuple[Sequences, IntArray]:
    """Return the released cases with the times of their events as the authors' program makes them.

    The size of Laplace noise, which is never negative, is added up along a case. Equation (4)'s part of the sum, at
    most half of it, is added to the original times. The copies of a case share the epsilon of its steps, but each
    starts with the whole one.
    """
    cases, rows, begins = log.copied(copies)
    shared = np.where(log.opens[rows], 1, np.repeat(copies[cases], np.diff(begins)))
    drawn = _sums_within(_drawn(len(rows), source, noise.geometric) * scales[rows] * shared, begins)
    original, noisy = float(np.ptp(log.starts)), float(drawn[begins[:-1]].max(initial=0.0))
    factor = original / (noisy + original) / 2 if original else 0.0
    elapsed = np.repeat(log.starts[cases], np.diff(begins)) + _sums_within(log.durations[rows], begins)
    times = np.minimum(elapsed + drawn * factor, _LATEST) // _SECOND
    return Sequences(log.automaton.labels, log.codes[rows].astype(np.int32), begins), times.astype(np.int64) * _SECOND


def _drawn(
    events: int,
    source: noise.Randomness,
    sampler: Callable[[Fraction, int, noise.Randomness], IntArray] = noise.discrete_laplace,
) -> FloatArray:
    """Draw Laplace noise of scale 1 for so many events, in blocks; with geometric numbers its absolute value.

    To a grid of 2**-32: discrete numbers from the exact sampler. Scaled by a range of up to a century the grid stays
    finer than the whole seconds that are released.
    """
    sizes = [min(_BLOCK, events - done) for done in range(0, events, _BLOCK)]
    drawn = [sampler(Fraction(1, _FINENESS), size, source) / _FINENESS for size in sizes]
    return np.concatenate([np.zeros(0), *drawn])


def _times_within(starts: IntArray, steps: IntArray, begins: IntArray, frame: Frame) -> IntArray:
    """Return times of events (microseconds) from the compressed starts of cases and the steps within them (seconds)."""
    elapsed = _sums_within(steps, begins)
    room = np.maximum(frame.last // _SECOND - starts, 0)
    total = elapsed[begins[1:] - 1]
    shrink = np.minimum(1.0, room / np.maximum(total, 1))
    lengths = np.diff(begins)
    times: IntArray = np.repeat(starts, lengths) + np.floor(elapsed * np.repeat(shrink, lengths)).astype(np.int64)
    return times * _SECOND


def _compressed(starts: FloatArray, frame: Frame) -> IntArray:
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


def _sums_within(values: Numbers, begins: IntArray) -> Numbers:
    """Running sums that begin anew with every case; every case has an event."""
    sums = np.zeros(len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1:])
    running: Numbers = sums[1:] - np.repeat(sums[begins[:-1]], np.diff(begins))
    return running
