"""Noised gradients of networks on one-hot cases: the question that training asks, and its per-example norms.

A case is a column of a one-hot table, so cases of one column have the same gradient and a step needs their number only.
Of a dense layer ``z = x W + b`` an example with layer input x and error e = dL/dz has the gradient (x e^T, e), whose
squared norm is ``|e|^2 (|x|^2 + 1)``: no gradient of an example is ever formed. Where an example's loss has several
terms (a real row against a made-up one) its gradient is a sum of such products, and

    |sum_s (x_s e_s^T, e_s)|^2 = sum_s sum_t (e_s . e_t) (x_s . x_t + 1).

The noise is Gaussian in floating point, from a fast generator seeded by the curator's source. It is not safe against
an adversary who looks at the low-order bits of the released floats (Mironov, CCS 2012), and the guarantee says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.privacy.noise import Randomness
from veilog.privacy.training_accounting import NoisedSteps

__all__ = ["SAFE", "Factors", "Gradients", "Outer", "Training", "add_rows", "clipped_sums", "squared_norms"]

FloatArray = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
Gradients = list[tuple[FloatArray, FloatArray]]
"""Of each dense layer, the sum of weight gradients (inputs x outputs) and of bias gradients."""

SAFE = 1 - 1e-5
"""Norms are computed in the networks' precision; clipping a little lower keeps them below the bound all the same."""
_THREADS = min(2, os.cpu_count() or 1)
_WORTH_THREADS = 20_000
_BLOCK = 32_768


@dataclass(frozen=True, eq=False)
class Outer:
    """A term of a layer's gradient: for each example the outer product of ``(input, 1)`` and ``error``."""

    inputs: npt.NDArray[Any]
    """(examples, width), or for one-hot inputs the positions of their ones: integers, (examples,)."""
    errors: FloatArray
    """(examples, outputs): the derivative of the example's loss by the layer's sums."""
    width: int
    """Number of inputs of the layer."""
    bias: bool = True
    """Whether the layer has a bias that is trained; where not, its gradient is zero and gets no noise."""


Room = dict[int, FloatArray]
Factors = Sequence[Sequence[Outer]]
"""Of each layer, the terms of its gradient."""
FactorsOf = Callable[[IntArray], Factors]
"""Maps columns to factors, each row by itself: what it gives for a row depends on that row's column and on public or
already released numbers only."""


def _inputs_product(one: Outer, other: Outer) -> FloatArray:
    """``x_s . x_t`` of each example."""
    if one.inputs.ndim == 1 and other.inputs.ndim == 1:
        same: FloatArray = (one.inputs == other.inputs).astype(one.errors.dtype)
        return same
    if one.inputs.ndim == 1:
        product: FloatArray = other.inputs[np.arange(len(one.inputs)), one.inputs]
        return product
    if other.inputs.ndim == 1:
        return _inputs_product(other, one)
    dense: FloatArray = np.einsum("ij,ij->i", one.inputs, other.inputs)
    return dense


def squared_norms(factors: Factors) -> npt.NDArray[np.float64]:
    """The squared L2 norm of each example's gradient over all layers, weights and biases."""
    total = np.zeros(len(factors[0][0].errors))
    for terms in factors:
        for place, one in enumerate(terms):
            for later, other in enumerate(terms[place:]):
                twice = 2 if later else 1
                errors = np.einsum("ij,ij->i", one.errors, other.errors)
                inputs = _inputs_product(one, other) + (1 if one.bias and other.bias else 0)
                total += twice * np.asarray(errors, np.float64) * inputs
    return np.maximum(total, 0)


def clip_factors(factors: Factors, clip: float) -> npt.NDArray[np.float64]:
    """What makes each example's gradient at most ``clip`` long when multiplied with it; 0 where it is not finite."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        norms = np.sqrt(squared_norms(factors))
        scale = np.minimum(1.0, clip * SAFE / norms)
    scale[norms == 0] = 1
    scale[~np.isfinite(norms)] = 0
    return scale


def clipped_sums(factors: Factors, clip: float, weights: npt.ArrayLike, room: Room | None = None) -> Gradients:
    """The sum over the examples of their clipped gradients, example i counted ``weights[i]`` times.

    Each example's clipped gradient has an L2 norm of at most ``clip``; one that is not finite counts as zero. ``room``
    keeps the arrays for the next call, which overwrites them.
    """
    scale = clip_factors(factors, clip)
    times = np.asarray(weights, np.float64)
    use = np.flatnonzero((scale != 0) & (times != 0))
    everything = len(use) == len(scale)
    sums = []
    for layer, terms in enumerate(factors):
        dtype = terms[0].errors.dtype
        by_row = (scale * times)[use].astype(dtype)[:, None]
        shape = (terms[0].width, terms[0].errors.shape[1])
        weight = _array(room, layer, shape, dtype)
        bias = np.zeros(shape[1], dtype)
        # dense terms first: the first of them writes the array, so that it need not be cleared
        for place, term in enumerate(sorted(terms, key=lambda term: -term.inputs.ndim)):
            errors = (term.errors if everything else term.errors[use]) * by_row
            inputs = term.inputs if everything else term.inputs[use]
            if term.bias:
                bias += errors.sum(axis=0)
            if inputs.ndim == 1:
                if place == 0:
                    weight[:] = 0
                add_rows(weight, inputs, errors)
            elif place == 0:
                np.matmul(inputs.T, errors, out=weight)
            else:
                weight += inputs.T @ errors
        sums.append((weight, bias))
    return sums


def _array(room: Room | None, layer: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> FloatArray:
    if room is None:
        return np.empty(shape, dtype)
    found = room.get(layer)
    if found is None or found.shape != shape or found.dtype != dtype:
        found = room[layer] = np.empty(shape, dtype)
    return found


def add_rows(weight: FloatArray, positions: npt.NDArray[Any], errors: FloatArray) -> None:
    """Add each row of errors to the row of its position; equal positions add up."""
    if len(positions) == 0:
        return
    order = np.argsort(positions, kind="stable")
    occupied, starts = np.unique(positions[order], return_index=True)
    weight[occupied] += np.add.reduceat(errors[order], starts, axis=0)


class Training:
    """The steps that were paid for. A step beyond them is refused.

    Opened by :meth:`veilog.privacy.curator.Curator.training`, which charges the whole plan before the first step.
    """

    def __init__(
        self,
        counts: IntArray,
        plan: Sequence[NoisedSteps],
        clips: Sequence[float],
        taken: Sequence[int],
        source: Randomness,
    ) -> None:
        self._counts = counts
        self._plan = tuple(plan)
        self._clips = tuple(float(clip) for clip in clips)
        self._taken = list(taken)
        words = source.words(8 * (_THREADS + 1)).reshape(_THREADS + 1, 8)
        self._sampling = np.random.Generator(np.random.SFC64(np.random.SeedSequence(words[0].tolist())))
        self._noise = [np.random.Generator(np.random.SFC64(np.random.SeedSequence(row.tolist()))) for row in words[1:]]
        self._pool: ThreadPoolExecutor | None = None
        self._rooms: list[Room] = [{} for _ in plan]

    @property
    def plan(self) -> tuple[NoisedSteps, ...]:
        return self._plan

    @property
    def taken(self) -> tuple[int, ...]:
        """Steps already taken, of each part of the plan."""
        return tuple(self._taken)

    def step(self, part: int, factors: FactorsOf, *, apart: bool = False) -> Gradients:
        """One noised sum of clipped gradients over a Poisson sample of the cases.

        ``factors`` gets the columns that were sampled, each once; its gradient counts as often as it was drawn. With
        ``apart`` it gets one row a sampled case instead, for losses that differ between cases of one column. It must
        treat each row by itself.

        Sensitivity: each case takes part with probability ``rate``, independently (of the cases of a column a binomial
        number does). A case that takes part adds one vector, which depends on its own column and on what was
        released before, and whose L2 norm is at most ``clip`` over all layers together; one that does not adds
        nothing. So a case changes the sum by at most ``clip`` in L2 norm, and Gaussian noise of standard deviation
        ``noise_multiplier * clip`` on every coordinate makes the step a Poisson-subsampled Gaussian mechanism of that
        noise multiplier (adding or removing one case). It was charged with the plan.

        The arrays that come back are overwritten by the next step of this part.
        """
        steps, clip = self._plan[part], self._clips[part]
        if self._taken[part] >= steps.steps:
            raise ParameterError(
                f"All {steps.steps} steps of the {steps.name} that were paid for are taken.", parameter="steps"
            )
        self._taken[part] += 1
        drawn = self._counts if steps.rate == 1 else self._sampling.binomial(self._counts, steps.rate)
        columns = np.flatnonzero(drawn)
        times = drawn[columns]
        if apart:
            columns, times = np.repeat(columns, times), np.ones(int(times.sum()), np.int64)
        if len(columns) == 0:  # the shape of the sums comes from the factors of any column, counted no times
            columns, times = np.zeros(1, np.int64), np.zeros(1, np.int64)
        asked = factors(columns)
        sums = clipped_sums(asked, clip, times, self._rooms[part])
        self._add_noise(sums, [terms[0].bias for terms in asked], steps.noise_multiplier * clip)
        return sums

    def _add_noise(self, sums: Gradients, biased: Sequence[bool], deviation: float) -> None:
        """Independent Gaussian noise on every coordinate, drawn by a few threads."""
        arrays = [weight.reshape(-1) for weight, _ in sums]
        arrays += [bias for (_, bias), there in zip(sums, biased, strict=True) if there]
        for array in arrays:
            if len(array) < _WORTH_THREADS or len(self._noise) == 1:
                _add_normals(self._noise[0], array, deviation)
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(len(self._noise))
            parts = np.array_split(array, len(self._noise))
            list(self._pool.map(_add_normals, self._noise, parts, [deviation] * len(parts)))


def _add_normals(generator: np.random.Generator, array: FloatArray, deviation: float) -> None:
    """Add noise to the array in blocks that stay in the processor's cache."""
    room = np.empty(min(_BLOCK, len(array)), array.dtype)
    for start in range(0, len(array), _BLOCK):
        part = array[start : start + _BLOCK]
        drawn = room[: len(part)]
        generator.standard_normal(out=drawn, dtype=drawn.dtype)
        drawn *= deviation
        part += drawn
