"""Plain networks in numpy: dense layers, per-example gradients, and optimisers.

Layers go forward and backward, with the factors of each example's gradient. The optimisers are Adam and RMSProp.
Weights are a dictionary of arrays: ``name.0.weight`` (inputs x outputs), ``name.0.bias`` and so on. A one-hot input is
given as the positions of its ones, so that its first layer is a look-up. Optimisers work in place, on blocks of arrays
that stay in the processor's cache. Their moments are functions of the gradients that they were given and of nothing
else, so after noised gradients they are released numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from veilog._typing import AnyArray
from veilog.privacy.mechanisms.clipped_sums import Outer, add_rows

Weights = dict[str, AnyArray]
Activation = Literal["tanh", "leaky", "none"]
Sums = list[tuple[AnyArray, ...]]
"""Sums of each layer's gradients: of weights, biases and, where it is normalised, gains."""

LEAK = 0.3
"""Slope of the leaky ReLU below 0."""
_LEAST_VARIANCE = 1e-5
_BLOCK = 16_384
_TINY = 1e-8


@dataclass(frozen=True)
class Network:
    """Dense layers of these widths; with ``residual`` equal widths add the input.

    With ``normalised`` the output of a layer for a row is brought to mean 0 and variance 1. Gains then scale it and
    biases shift it, before the activation (Ba, Kiros, Hinton, "Layer Normalization", 2016).
    """

    name: str
    widths: tuple[int, ...]
    activations: tuple[Activation, ...]
    residual: bool = False
    normalised: bool = False
    leak: float = LEAK

    def __post_init__(self) -> None:
        assert len(self.activations) == len(self.widths) - 1

    @property
    def layers(self) -> range:
        return range(len(self.activations))

    @property
    def parameters(self) -> int:
        """Number of weights, biases and gains."""
        own = 2 if self.normalised else 1
        return sum((self.widths[i] + own) * self.widths[i + 1] for i in self.layers)

    def adds(self, layer: int) -> bool:
        """Return True if the layer's input is added to its output.

        It is in all layers but the last, where the widths allow it.
        """
        return self.residual and layer < len(self.activations) - 1 and self.widths[layer] == self.widths[layer + 1]

    def names(self, layer: int) -> tuple[str, ...]:
        """Return the names of a layer's weights, biases and, if normalised, gains."""
        own = ("weight", "bias", "gain") if self.normalised else ("weight", "bias")
        return tuple(f"{self.name}.{layer}.{what}" for what in own)


@dataclass(eq=False)
class Trace:
    """Record of a forward pass for the backward pass."""

    output: AnyArray
    inputs: list[AnyArray] = field(default_factory=list)
    """Inputs of each layer."""
    activated: list[AnyArray] = field(default_factory=list)
    """Activation's values of each layer, before a residual input is added."""
    normal: list[tuple[AnyArray, AnyArray]] = field(default_factory=list)
    """Sums of each normalised layer at mean 0 and variance 1, with their factors."""


@dataclass(frozen=True, eq=False)
class Normalised(Outer):
    """The factors of a normalised layer; it has no bias before it is normalised."""

    by_bias: AnyArray = field(kw_only=True)
    by_gain: AnyArray = field(kw_only=True)


def initial(network: Network, rng: np.random.Generator, dtype: npt.DTypeLike = np.float32) -> Weights:
    """Return uniform weights and biases within ``1/sqrt(inputs)``.

    Biases of normalised layers are 0 and gains 1.
    """
    weights = {}
    for layer in network.layers:
        bound = 1 / np.sqrt(network.widths[layer])
        weight, bias, *gain = network.names(layer)
        shape = (network.widths[layer], network.widths[layer + 1])
        weights[weight] = rng.uniform(-bound, bound, shape).astype(dtype)
        if gain:
            weights[bias], weights[gain[0]] = np.zeros(shape[1], dtype), np.ones(shape[1], dtype)
            continue
        weights[bias] = rng.uniform(-bound, bound, shape[1]).astype(dtype)
    return weights


def sigmoid(x: AnyArray) -> AnyArray:
    """Return the sigmoid in the precision of x; far below 0 it is small but not 0."""
    with np.errstate(over="ignore"):
        result: AnyArray = 1 / (1 + np.exp(-x))
    return result


def forward(network: Network, weights: Weights, inputs: AnyArray) -> Trace:
    """Return the network's output for rows or integer positions of ones.

    The trace has all that the backward pass needs.
    """
    trace = Trace(inputs)
    for layer, kind in enumerate(network.activations):
        weight, bias, *gain = (weights[name] for name in network.names(layer))
        x = trace.output
        trace.inputs.append(x)
        z = weight[x] if x.ndim == 1 else x @ weight
        if gain:
            z -= z.mean(axis=1, keepdims=True)
            by = 1 / np.sqrt(np.square(z).mean(axis=1, keepdims=True) + _LEAST_VARIANCE)
            trace.normal.append((z * by, by))
            z = trace.normal[-1][0] * gain[0]
        z += bias
        if kind == "tanh":
            np.tanh(z, out=z)
        elif kind == "leaky":
            z = np.maximum(z, network.leak * z)
        trace.activated.append(z)
        trace.output = z + x if network.adds(layer) else z
    return trace


def backward(
    network: Network, weights: Weights, trace: Trace, by_output: AnyArray, *, to_input: bool = False
) -> tuple[list[Outer], AnyArray]:
    """Return the factors of each layer, and a derivative, from the loss by the output.

    The derivative is by the input, with ``to_input``, else by the first layer's output, which costs less.
    """
    factors: list[Outer] = []
    flow = by_output
    for layer in reversed(network.layers):
        a = trace.activated[layer]
        kind = network.activations[layer]
        if kind == "tanh":
            error = flow * (1 - a * a)
        elif kind == "leaky":
            error = np.where(a > 0, flow, network.leak * flow)
        else:
            error = flow
        if network.normalised:
            factors.append(
                _normalise_gradients(weights[network.names(layer)[2]], trace, layer, error, network.widths[layer])
            )
            error = factors[-1].errors
        else:
            factors.append(Outer(trace.inputs[layer], error, network.widths[layer]))
        if layer or to_input:
            back = error @ weights[network.names(layer)[0]].T
            flow = back + flow if network.adds(layer) else back
    return factors[::-1], flow


def _normalise_gradients(gain: AnyArray, trace: Trace, layer: int, error: AnyArray, width: int) -> Normalised:
    """Return a layer's factors from each example's loss by its activation's input."""
    unit, by = trace.normal[layer]
    by_unit = error * gain
    by_sums = by_unit - by_unit.mean(axis=1, keepdims=True)
    by_sums -= unit * (by_unit * unit).mean(axis=1, keepdims=True)
    by_sums *= by
    return Normalised(trace.inputs[layer], by_sums, width, bias=False, by_bias=error, by_gain=error * unit)


def gradients(factors: Sequence[Outer]) -> Sums:
    """Return the sums over the examples, neither clipped nor noised.

    They are for gradients that depend on public numbers only.
    """
    sums: Sums = []
    for term in factors:
        if term.inputs.ndim == 1:
            weight = np.zeros((term.width, term.errors.shape[1]), term.errors.dtype)
            add_rows(weight, term.inputs, term.errors)
        else:
            weight = term.inputs.T @ term.errors
        if isinstance(term, Normalised):
            sums.append((weight, term.by_bias.sum(axis=0), term.by_gain.sum(axis=0)))
        else:
            sums.append((weight, term.errors.sum(axis=0)))
    return sums


def adam(
    network: Network,
    weights: Weights,
    moments: Weights,
    sums: Sequence[tuple[AnyArray, ...]],
    rate: float,
    *,
    scale: float = 1.0,
    betas: tuple[float, float] = (0.9, 0.999),
    corrected: bool = False,
) -> None:
    """Take one step of Adam with ``scale`` times the gradients' sums.

    Kingma, Ba, 2015. A small number keeps it from dividing by 0. With ``corrected`` it is added to the corrected moment
    (the paper's algorithm), else to the moment as it is (its faster order).
    """
    clock = moments.setdefault(f"{network.name}.steps", np.zeros(1, np.float64))
    clock += 1
    first, second = betas
    correction = float(np.sqrt(1 - second ** clock[0]))
    step, tiny = rate * correction / float(1 - first ** clock[0]), _TINY * correction if corrected else _TINY
    for g, w, m, v in _blocks(network, weights, moments, sums, ".m", ".v"):
        m *= first
        m += g * ((1 - first) * scale)
        v *= second
        v += g * g * ((1 - second) * scale**2)
        w -= m / (np.sqrt(v) + tiny) * step


def rmsprop(
    network: Network,
    weights: Weights,
    moments: Weights,
    sums: Sequence[tuple[AnyArray, ...]],
    rate: float,
    *,
    scale: float = 1.0,
    alpha: float = 0.99,
    bound: float | None = None,
) -> None:
    """Take one step of RMSProp with ``scale`` times the gradients' sums.

    Then weights are cut to ``bound``, if any.
    """
    for g, w, v in _blocks(network, weights, moments, sums, ".r"):
        v *= alpha
        v += g * g * ((1 - alpha) * scale**2)
        w -= g / (np.sqrt(v) + _TINY) * (rate * scale)
        if bound is not None:
            np.clip(w, -bound, bound, out=w)


def _blocks(
    network: Network, weights: Weights, moments: Weights, sums: Sequence[tuple[AnyArray, ...]], *names: str
) -> Iterator[list[AnyArray]]:
    """Yield blocks of each array of gradients, weights and named moments."""
    for layer in network.layers:
        for name, gradient in zip(network.names(layer), sums[layer], strict=True):
            own = [moments.setdefault(name + kind, np.zeros_like(gradient)) for kind in names]
            flat = [array.reshape(-1) for array in (gradient, weights[name], *own)]
            for start in range(0, gradient.size, _BLOCK):
                yield [array[start : start + _BLOCK] for array in flat]
