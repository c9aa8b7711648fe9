"""Sums of clipped gradients of networks on one-hot cases, in integers.

A case is a column of a one-hot table. Cases of one column have the same gradient, so a step needs only their number.
Take a dense layer ``z = x W + b`` and an example with layer input x and error e = dL/dz. Its gradient is (x e^T, e),
whose squared norm is ``|e|^2 (|x|^2 + 1)``: no gradient of an example is ever formed. Where an example's loss has
several terms (a real row against a synthetic one) its gradient is a sum of such products, and ::

    |sum_s (x_s e_s^T, e_s)|^2 = sum_s sum_t (e_s . e_t) (x_s . x_t + 1).

The results are sums of whole numbers, so one case cannot change them by more than its own. Sums of floats are rounded,
and on a log of millions of cases one rounding is worth many cases. (This module is apart from
:mod:`veilog.privacy.mechanisms.gradients`, the query itself, so that each can be read as a whole.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
Gradients = list[tuple[FloatArray, FloatArray]]
"""Sums of weight gradients (inputs x outputs) and of bias gradients, by layer."""

IntegerSums = list[tuple[IntArray, IntArray]]
"""Such sums in whole numbers, in units of the clipping bound over ``2**GRID``."""

SAFE = 1 - 1e-5
"""Factor on the clipping bound. Norms have the networks' precision; clipping a little lower mostly keeps the bound."""
GRID = 34
"""Bits of a clipped gradient's largest length in units: far finer than any noise, and sums have 29 bits left."""
FOR_INPUTS = 14
"""Binary digits to which inputs that are no ones are rounded; errors (of the bound) get the other digits."""
_EXACT = 2.0**50
_ATTEMPTS = 5
_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Outer:
    """Term of a layer's gradient: each example's outer product ``(input, 1) x error``."""

    inputs: npt.NDArray[Any]
    """(examples, width), or for one-hot inputs the positions of their ones: integers, (examples,)."""
    errors: FloatArray
    """(examples, outputs): derivative of the example's loss by the layer's sums."""
    width: int
    """Number of inputs of the layer."""
    bias: bool = True
    """True if the layer has a trained bias; if not, its gradient is 0, without noise."""


Factors = Sequence[Sequence[Outer]]
"""Terms of each layer's gradient."""


def _inputs_product(one: Outer | _Rounded, other: Outer | _Rounded) -> FloatArray:
    """Return ``x_s . x_t`` of each example."""
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
    """Return each example's squared L2 norm over all layers, weights and biases."""
    total = np.zeros(len(factors[0][0].errors))
    for terms in factors:
        for place, one in enumerate(terms):
            for later, other in enumerate(terms[place:]):
                twice = 2 if later else 1
                errors = np.einsum("ij,ij->i", one.errors, other.errors)
                inputs = _inputs_product(one, other) + (1 if one.bias and other.bias else 0)
                total += twice * np.asarray(errors, np.float64) * inputs
    return np.maximum(total, 0)


@dataclass(frozen=True, eq=False)
class _Rounded:
    """Term in whole numbers, held in float64, as they are below 2**53.

    Inputs are in units of ``1/one``. The unit of errors makes their products multiples of the grid.
    """

    inputs: npt.NDArray[Any]
    errors: npt.NDArray[np.float64]
    width: int
    bias: bool
    one: int
    """Factor of the bias: 1 in units of the inputs."""


def clip_sums(factors: Factors, clip: float) -> list[list[_Rounded]]:
    """Return each example's clipped gradient as integers of L2 norm <= ``2**GRID``.

    The vectors lie on the grid ``clip / 2**GRID``, and the bound on the norm holds exactly. Inputs x are rounded
    towards 0 to multiples of ``2**-FOR_INPUTS`` (one-hot ones are whole already). The clipped errors e are rounded so
    finely that products are multiples of the grid. The gradient is then the sum of the outer products of these
    integers, itself integer. Float sums decide how an example is clipped, and they may be wrong. The norm is guaranteed
    by :func:`_longest`, a proven upper bound on the norm of the integers. Where it exceeds ``2**GRID`` the example is
    clipped further, and in the end counts as zero. So does one that is not finite. Each example is treated by itself:
    its integers depend on its own factors and the clip.
    """
    finite = _finite(factors)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore"):
        norms = np.sqrt(squared_norms(factors))
        scale = np.where(norms <= clip * SAFE, 1.0, clip * SAFE / norms)
    scale[~finite | ~np.isfinite(norms)] = 0
    inputs = [[_whole_inputs(term, scale) for term in terms] for terms in factors]
    for attempt in range(_ATTEMPTS):
        rounded = [
            [_add_errors(term, whole, scale / clip) for term, whole in zip(terms, wholes, strict=True)]
            for terms, wholes in zip(factors, inputs, strict=True)
        ]
        longest = _longest(rounded)
        over = ~(longest <= 2**GRID)
        if not over.any():
            return rounded
        shorter = 2**GRID * SAFE / np.where(np.isfinite(longest), longest, np.inf)
        scale = np.where(over, 0.0 if attempt == _ATTEMPTS - 2 else scale * shorter, scale)
    raise AssertionError("nothing is longer than nothing")


def _finite(factors: Factors) -> npt.NDArray[np.bool_]:
    finite = np.ones(len(factors[0][0].errors), dtype=bool)
    for term in (term for terms in factors for term in terms):
        finite &= np.isfinite(term.errors).all(axis=1)
        if term.inputs.ndim == 2:
            finite &= np.isfinite(term.inputs).all(axis=1)
    return finite


def _whole(values: npt.NDArray[Any], by: Any, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return ``by * values`` in float64, truncated and cut; 0 outside these rows."""
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        scaled: npt.NDArray[np.float64] = np.multiply(values, by, dtype=np.float64)
    scaled[~rows] = 0
    np.clip(scaled, -_EXACT, _EXACT, out=scaled)
    np.trunc(scaled, out=scaled)
    return scaled


def _whole_inputs(term: Outer, scale: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    return term.inputs if term.inputs.ndim == 1 else _whole(term.inputs, 2.0**FOR_INPUTS, scale > 0)


def _add_errors(term: Outer, inputs: npt.NDArray[Any], by: npt.NDArray[np.float64]) -> _Rounded:
    bits = 0 if term.inputs.ndim == 1 else FOR_INPUTS
    errors = _whole(term.errors, by[:, None] * 2.0 ** (GRID - bits), by > 0)
    return _Rounded(inputs, errors, term.width, term.bias, 1 << bits)


def _longest(rounded: Sequence[Sequence[_Rounded]]) -> npt.NDArray[np.float64]:
    """Return an upper bound on the L2 norm of each example's integer gradient.

    With ``n`` the longest vector, every float64 product of inner products ``(e_s . e_t) (x_s . x_t + 1)`` is wrong by
    at most ``(2 n + 4) 2**-53`` times ``|e_s| |e_t| |(x_s, 1)| |(x_t, 1)|`` in whatever order it is summed (Higham,
    "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1; nothing underflows, all are integers). Added up
    these are at most ``(sum_s |e_s| |(x_s, 1)|)**2``, the terms as if nothing cancelled. The code adds more than twice
    that. This also covers the rounding of the bound itself and of a few hundred additions.
    """
    total = np.zeros(len(rounded[0][0].errors))
    apart = np.zeros_like(total)
    most = 1
    for terms in rounded:
        sizes = np.zeros_like(total)
        for place, one in enumerate(terms):
            most = max(most, one.width, one.errors.shape[1])
            for later, other in enumerate(terms[place:]):
                errors = np.einsum("ij,ij->i", one.errors, other.errors)
                inputs = _inputs_product(one, other) + (one.one * other.one if one.bias and other.bias else 0)
                total += (2 if later else 1) * errors * inputs
                if not later:
                    sizes += np.sqrt(np.maximum(errors * inputs, 0))
        apart += sizes**2
    bound: npt.NDArray[np.float64] = np.sqrt(np.maximum(total, 0) + apart * (most + 512) * 2.0**-50)
    return bound


def integer_sums(rounded: Sequence[Sequence[_Rounded]], counts: IntArray) -> IntegerSums:
    """Return the sum of integer gradients, each ``counts[i]`` times, modulo 2**64.

    Every product and every sum is exact, whatever is summed in what order. So one more example changes the sum by its
    own integer gradient and by nothing else. (Were the sum ever too large for 64 bits, its residue is a function of the
    exact sum. The noise is added modulo 2**64 too, and residues of a private answer are as private.)
    """
    use = np.flatnonzero(counts)
    times = counts[use].astype(np.int64)[:, None]
    sums = []
    for terms in rounded:
        shape = (terms[0].width, terms[0].errors.shape[1])
        weight, bias = np.zeros(shape, np.int64), np.zeros(shape[1], np.int64)
        for term in terms:
            errors = term.errors[use].astype(np.int64) * times
            if term.bias:
                bias += errors.sum(axis=0) * term.one
            if term.inputs.ndim == 1:
                add_rows(weight, term.inputs[use], errors)
            else:
                for start in range(0, len(use), _ROWS):
                    block = slice(start, start + _ROWS)
                    weight += exact_product(term.inputs[use[block]].astype(np.int64), errors[block])
        sums.append((weight, bias))
    return sums


def exact_product(one: IntArray, other: IntArray) -> IntArray:
    """Return ``one.T @ other`` modulo 2**64.

    The numbers are cut into pieces of so few bits that every sum of their products is below 2**53. Float64 has these
    exactly, so the fast product of floats is exact in any order and with any fused operations.
    """
    for_both = 53 - len(one).bit_length()
    bits = min(for_both // 2, max(1, int(np.abs(one).max(initial=0)).bit_length()))
    total = np.zeros((one.shape[1], other.shape[1]), np.int64)
    pieces = _pieces(other, for_both - bits)
    for shift, first in _pieces(one, bits):
        for further, second in pieces:
            if shift + further < 64:
                total += (first.T @ second).astype(np.int64) << (shift + further)
    return total


def _pieces(values: IntArray, bits: int) -> list[tuple[int, npt.NDArray[np.float64]]]:
    """Return numbers of at most so many bits with their places; shifted, they add up."""
    left, place, pieces = values, 0, []
    while max(int(left.max(initial=0)), -int(left.min(initial=0))).bit_length() > bits:
        pieces.append((place, (left & (2**bits - 1)).astype(np.float64)))
        left, place = left >> bits, place + bits
    return [*pieces, (place, left.astype(np.float64))]


def sums_to_floats(sums: IntegerSums, clip: float, dtypes: Sequence[npt.DTypeLike]) -> Gradients:
    """Return integer sums in the gradients' own units: post-processing."""
    unit = clip / 2**GRID
    return [
        ((weight * unit).astype(dtype, copy=False), (bias * unit).astype(dtype, copy=False))
        for (weight, bias), dtype in zip(sums, dtypes, strict=True)
    ]


def clipped_sums(factors: Factors, clip: float, counts: npt.ArrayLike) -> Gradients:
    """Return noiseless sums, ``counts[i]`` times example i, which depends on no case."""
    sums = integer_sums(clip_sums(factors, clip), np.asarray(counts, np.int64))
    return sums_to_floats(sums, clip, [terms[0].errors.dtype for terms in factors])


def add_rows(weight: FloatArray, positions: npt.NDArray[Any], errors: FloatArray) -> None:
    """Add each row of errors to the row of its position; equal positions add up."""
    if len(positions) == 0:
        return
    order = np.argsort(positions, kind="stable")
    occupied, starts = np.unique(positions[order], return_index=True)
    weight[occupied] += np.add.reduceat(errors[order], starts, axis=0)
