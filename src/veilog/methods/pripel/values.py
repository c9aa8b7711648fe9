"""A column of attribute values with local noise on each, by the type of the column."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import FloatArray, IntArray
from veilog.messages import Message
from veilog.methods.pripel.noise import bounded_noise, randomised_response
from veilog.privacy.mechanisms.noise import Randomness

TELLS_APART = 0.5
"""A text attribute with more distinct values than that, for each value it has, is no category."""
_STEPS = 2**20
_MOST_STEPS = 2**31
_SECOND = 1_000_000


def refusal(name: str, column: pa.ChunkedArray) -> Message | None:
    """Why an attribute cannot be noised; None where it can."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None
    if pa.types.is_timestamp(kind):
        return None
    if not (pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return Message("pripel-attribute-type-unsuited", name=name)
    values = len(column) - column.null_count
    distinct = pc.count_distinct(column.cast(pa.string())).as_py()
    if distinct > max(1, TELLS_APART * values):
        return Message("pripel-attribute-too-distinct", name=name, distinct=distinct, values=values)
    return None


def noised_column(column: pa.ChunkedArray, rows: IntArray, epsilon: Fraction, source: Randomness) -> pa.Array:
    """The values of these rows (-1: none), each with noise for epsilon; what is missing stays missing.

    True or false and categories: randomised response over the values that occur. Numbers and times: bounded noise
    between the smallest and the largest value that occur; whole numbers in steps of 1, times in steps of a second,
    others in 2**20 steps. A column whose values are all equal gets noise over one unit.
    """
    picked = column.take(pa.array(rows, pa.int64(), mask=rows < 0))
    kind = column.type
    if pa.types.is_boolean(kind):
        return _categories(picked.cast(pa.string()), pa.array(["false", "true"]), epsilon, source).cast(pa.bool_())
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = pc.unique(column.cast(pa.string()).drop_null()).sort()
        coded = _categories(picked.cast(pa.string()), values, epsilon, source)
        return coded.dictionary_encode() if pa.types.is_dictionary(kind) else coded
    if pa.types.is_timestamp(kind):
        unit = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        times = _numbers(picked.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
        return _filled(_noised_whole(times, unit, _SECOND, epsilon, source), picked).cast(kind)
    if pa.types.is_integer(kind):
        return _filled(_noised_whole(_numbers(picked), column, 1, epsilon, source), picked).cast(kind)
    return _filled(_noised_numbers(picked, column, epsilon, source), picked).cast(kind)


def _categories(picked: pa.ChunkedArray, values: pa.Array, epsilon: Fraction, source: Randomness) -> pa.Array:
    codes = pc.index_in(picked, values).combine_chunks()
    known = np.asarray(codes.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    result = np.zeros(len(codes), dtype=np.int64)
    given = codes.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    result[known] = randomised_response(given, len(values), epsilon, source)
    return values.take(pa.array(result, pa.int64(), mask=~known))


def _numbers(picked: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(picked.cast(pa.int64()), 0).to_numpy(), dtype=np.int64)


def _noised_whole(
    values: IntArray, column: pa.ChunkedArray, unit: int, epsilon: Fraction, source: Randomness
) -> IntArray:
    """Values between the least and the largest of the column, in steps of a unit; of more units, where the range is so
    wide that there would be more than 2**31 steps."""
    bounds = pc.min_max(column.cast(pa.int64())).as_py()
    low, high = (bounds["min"] or 0) // unit, (bounds["max"] or 0) // unit
    step = -(-(high - low) // _MOST_STEPS) or 1
    whole = np.clip(values // unit, low, high)
    wide = high - low >= 2**62 or max(abs(low), abs(high)) >= 2**62  # else nothing overflows
    places = (whole.astype(object) - low) // step if wide else (whole - low) // step
    noised = bounded_noise(places.astype(np.int64), max((high - low) // step, 1), epsilon, source)
    if wide:
        return np.asarray([min(low + place * step, 2**63 - 1) for place in noised.tolist()], dtype=np.int64)
    return np.asarray((low + noised * step) * unit, dtype=np.int64)


def _noised_numbers(
    picked: pa.ChunkedArray, column: pa.ChunkedArray, epsilon: Fraction, source: Randomness
) -> FloatArray:
    everything = column.cast(pa.float64()).to_numpy()
    everything = everything[np.isfinite(everything)]
    if len(everything) == 0:
        return np.zeros(len(picked))
    low, high = float(everything.min()), float(everything.max())
    step = high / _STEPS - low / _STEPS
    if step < 1e-300:  # all values equal
        high = low + max(abs(low), 1.0) if abs(low) < 1e300 else low / 2
        step = high / _STEPS - low / _STEPS
    values = picked.cast(pa.float64()).to_numpy()
    finite = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    places = np.rint((finite / 2 - low / 2) / (step / 2)).astype(np.int64)
    part = bounded_noise(np.clip(places, 0, _STEPS), _STEPS, epsilon, source) / _STEPS
    return np.asarray(low * (1 - part) + high * part, dtype=np.float64)


def _filled(values: IntArray | FloatArray, picked: pa.ChunkedArray) -> pa.Array:
    missing = np.asarray(picked.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return pa.array(values, mask=missing)
