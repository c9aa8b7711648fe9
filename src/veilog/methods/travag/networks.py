"""Plain networks in numpy: dense layers, forward and backward, with the factors of each example's gradient.

Weights are a dictionary of arrays: ``name.0.weight`` (inputs x outputs), ``name.0.bias`` and so on. A one-hot input is
given as the positions of its ones, so that its first layer is a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from veilog._typing import AnyArray
from veilog.privacy.training.sums import Gradients, Outer, add_rows

__all__ = ["Network", "Trace", "Weights", "backward", "forward", "gradients", "initial", "sigmoid"]

Weights = dict[str, AnyArray]
Activation = Literal["tanh", "leaky", "none"]

LEAK = 0.3
"""Slope of the leaky ReLU below 0."""


@dataclass(frozen=True)
class Network:
    """Dense layers of these widths, from input to output; with ``residual`` equal widths get the input added."""

    name: str
    widths: tuple[int, ...]
    activations: tuple[Activation, ...]
    residual: bool = False

    def __post_init__(self) -> None:
        assert len(self.activations) == len(self.widths) - 1

    @property
    def layers(self) -> range:
        return range(len(self.activations))

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum((self.widths[i] + 1) * self.widths[i + 1] for i in self.layers)

    def adds(self, layer: int) -> bool:
        """Whether the layer's input is added to its output: in all but the last, where the widths allow it."""
        return self.residual and layer < len(self.activations) - 1 and self.widths[layer] == self.widths[layer + 1]

    def names(self, layer: int) -> tuple[str, str]:
        return f"{self.name}.{layer}.weight", f"{self.name}.{layer}.bias"


@dataclass(frozen=True, eq=False)
class Trace:
    """What a forward pass leaves for the backward pass."""

    inputs: list[AnyArray]
    """Of each layer."""
    activated: list[AnyArray]
    """Of each layer, the activation's values, before a residual input is added."""
    output: AnyArray


def initial(network: Network, rng: np.random.Generator, dtype: npt.DTypeLike = np.float32) -> Weights:
    """Uniform weights and biases within ``1/sqrt(inputs)``."""
    weights = {}
    for layer in network.layers:
        bound = 1 / np.sqrt(network.widths[layer])
        weight, bias = network.names(layer)
        shape = (network.widths[layer], network.widths[layer + 1])
        weights[weight] = rng.uniform(-bound, bound, shape).astype(dtype)
        weights[bias] = rng.uniform(-bound, bound, shape[1]).astype(dtype)
    return weights


def sigmoid(x: AnyArray) -> AnyArray:
    """Without overflow, in the precision of x."""
    result: AnyArray = 0.5 * (1 + np.tanh(0.5 * x))
    return result


def forward(network: Network, weights: Weights, inputs: AnyArray) -> Trace:
    """The network's output, and what is needed to go back. ``inputs``: rows, or integer positions of ones."""
    layer_inputs: list[AnyArray] = []
    activated: list[AnyArray] = []
    x = inputs
    for layer, kind in enumerate(network.activations):
        weight, bias = (weights[name] for name in network.names(layer))
        layer_inputs.append(x)
        z = weight[x] if x.ndim == 1 else x @ weight
        z += bias
        if kind == "tanh":
            np.tanh(z, out=z)
        elif kind == "leaky":
            z = np.maximum(z, LEAK * z)
        activated.append(z)
        x = z + x if network.adds(layer) else z
    return Trace(layer_inputs, activated, x)


def backward(
    network: Network, weights: Weights, trace: Trace, by_output: AnyArray, *, to_input: bool = False
) -> tuple[list[Outer], AnyArray | None]:
    """From the derivative of each example's loss by the output: the factors of each layer, and (if asked for) the
    derivative by the input."""
    factors: list[Outer] = []
    flow: AnyArray | None = by_output
    for layer in reversed(network.layers):
        assert flow is not None
        a = trace.activated[layer]
        kind = network.activations[layer]
        if kind == "tanh":
            error = flow * (1 - a * a)
        elif kind == "leaky":
            error = np.where(a > 0, flow, LEAK * flow)
        else:
            error = flow
        factors.append(Outer(trace.inputs[layer], error, network.widths[layer]))
        if layer == 0 and not to_input:
            flow = None
            break
        back = error @ weights[network.names(layer)[0]].T
        flow = back + flow if network.adds(layer) else back
    return factors[::-1], flow


def gradients(factors: Sequence[Outer]) -> Gradients:
    """The sums over the examples, neither clipped nor noised: for what depends on public numbers only."""
    sums = []
    for term in factors:
        if term.inputs.ndim == 1:
            weight = np.zeros((term.width, term.errors.shape[1]), term.errors.dtype)
            add_rows(weight, term.inputs, term.errors)
        else:
            weight = term.inputs.T @ term.errors
        sums.append((weight, term.errors.sum(axis=0)))
    return sums
