"""Adam and RMSProp, in place on arrays. Their moments are functions of the gradients they were given and of nothing
else, so after noised gradients they are released numbers.

Arrays are worked on in blocks that stay in the processor's cache: with whole arrays of millions of numbers the time
goes into memory, not into sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veilog._typing import AnyArray
from veilog.methods.travag.networks import Network, Weights

_BLOCK = 16_384
_TINY = 1e-8


def _moment(moments: Weights, name: str, like: AnyArray) -> AnyArray:
    if name not in moments:
        moments[name] = np.zeros_like(like)
    return moments[name]


def _blocks(*arrays: AnyArray) -> Iterator[tuple[AnyArray, ...]]:
    flat = [array.reshape(-1) for array in arrays]
    room = np.empty(min(_BLOCK, flat[0].size), flat[0].dtype)
    for start in range(0, flat[0].size, _BLOCK):
        parts = [array[start : start + _BLOCK] for array in flat]
        yield (*parts, room[: len(parts[0])])


def adam(
    network: Network,
    weights: Weights,
    moments: Weights,
    gradients: Sequence[tuple[AnyArray, ...]],
    rate: float,
    *,
    scale: float = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
    corrected: bool = False,
) -> None:
    """One step of Adam (Kingma, Ba, 2015) with ``scale`` times the gradients, which are overwritten. With ``corrected``
    the small number that keeps it from dividing by 0 is added to the corrected moment (the paper's algorithm), else to
    the moment as it is (its faster order)."""
    clock = moments.setdefault(f"{network.name}.steps", np.zeros(1, np.float64))
    clock += 1
    first, second = betas
    correction = float(np.sqrt(1 - second ** clock[0]))
    step, tiny = rate * correction / float(1 - first ** clock[0]), _TINY * correction if corrected else _TINY
    for layer in network.layers:
        for name, gradient in zip(network.names(layer), gradients[layer], strict=True):
            mean, square = _moment(moments, name + ".m", gradient), _moment(moments, name + ".v", gradient)
            for g, m, v, w, room in _blocks(gradient, mean, square, weights[name]):
                m *= first
                np.multiply(g, (1 - first) * scale, out=room)
                m += room
                v *= second
                np.multiply(g, g, out=room)
                room *= (1 - second) * scale**2
                v += room
                np.sqrt(v, out=room)
                room += tiny
                np.divide(m, room, out=room)
                room *= step
                w -= room


def rmsprop(
    network: Network,
    weights: Weights,
    moments: Weights,
    gradients: Sequence[tuple[AnyArray, ...]],
    rate: float,
    *,
    scale: float = 1.0,
    alpha: float = 0.99,
    bound: float | None = None,
) -> None:
    """One step of RMSProp with ``scale`` times the gradients; then weights are cut to ``bound``, if there is one."""
    for layer in network.layers:
        for name, gradient in zip(network.names(layer), gradients[layer], strict=True):
            square = _moment(moments, name + ".r", gradient)
            for g, v, w, room in _blocks(gradient, square, weights[name]):
                v *= alpha
                np.multiply(g, g, out=room)
                room *= (1 - alpha) * scale**2
                v += room
                np.sqrt(v, out=room)
                room += _TINY
                np.divide(g, room, out=room)
                room *= rate * scale
                w -= room
                if bound is not None:
                    np.clip(w, -bound, bound, out=w)
