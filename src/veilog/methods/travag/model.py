"""Facts and arrays of a file for TraVaG's generator and its training, and back.

Everything read is checked as if a stranger had written it: every number in its range, every array of the shape that the
configuration asks for. So a file that was made to harm can give strange variants, but nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from veilog._plain import Misfit, from_plain, to_plain
from veilog._typing import AnyArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences
from veilog.methods.travag.networks import Network, Weights
from veilog.methods.travag.settings import Configuration, Networks, Trained, TrainingState
from veilog.modelfile import Damaged
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.mechanisms.mechanism import NoisedSteps

Arrays = Mapping[str, AnyArray]
_WIDEST = 1_000_000
_MOST_CASES = 2**53
_COLUMNS = ("columns.codes", "columns.offsets")


@dataclass(frozen=True)
class _TrainedFacts:
    """The facts of a trained generator."""

    configuration: Configuration
    cases: int
    activities: tuple[str, ...]

    def __post_init__(self) -> None:
        if not -_MOST_CASES <= self.cases <= _MOST_CASES:
            raise Misfit("the number of cases is none")
        if len(set(self.activities)) != len(self.activities):
            raise Misfit("the activities are not distinct names")


@dataclass(frozen=True)
class _StateFacts(_TrainedFacts):
    """The facts of a training in progress."""

    as_published: bool
    epsilon: str
    delta: str
    charges: tuple[Charge, ...]
    plan: tuple[NoisedSteps, ...]
    taken: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.taken, default=0) < 0:
            raise Misfit("numbers of steps are not whole numbers")


def trained_to(trained: Trained) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the facts and arrays of a generator; its guarantee is the caller's."""
    facts = _TrainedFacts(trained.configuration, trained.cases, trained.columns.labels)
    return to_plain(facts), {**_columns_to(trained.columns), **_prefix_names("weights", trained.weights)}


def trained_from(facts: Any, arrays: Arrays) -> Trained:
    """Return the generator of facts and arrays; ``Damaged`` or ``Misfit`` otherwise."""
    found = from_plain(_TrainedFacts, facts)
    columns, weights = _columns_from(found.activities, arrays), _weights_under("weights", arrays)
    networks = _networks(columns, found.configuration)
    _check_weights(weights, [networks.generator, networks.decoder])
    if set(arrays) - {*_COLUMNS, *(f"weights.{name}" for name in weights)}:
        raise Damaged("there are arrays that no generator has")
    return Trained(columns, weights, found.configuration, found.cases)


def state_to(state: TrainingState) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the facts and arrays of a training in progress."""
    same = {field.name: getattr(state, field.name) for field in fields(_StateFacts) if field.name != "activities"}
    arrays = {
        **_columns_to(state.columns),
        "column_counts": np.asarray(state.column_counts, np.int64),
        **_prefix_names("weights", state.weights),
        **_prefix_names("moments", state.moments),
    }
    return to_plain(_StateFacts(activities=state.columns.labels, **same)), arrays


def state_from(facts: Any, arrays: Arrays) -> TrainingState:
    """Return the state of facts and arrays; ``Damaged`` or ``Misfit`` otherwise."""
    try:
        found = from_plain(_StateFacts, facts)
    except ParameterError as error:  # of steps that cannot be
        raise Misfit(str(error)) from None
    columns, weights = _columns_from(found.activities, arrays), _weights_under("weights", arrays)
    _check_weights(weights, _networks(columns, found.configuration).all())
    counts = arrays.get("column_counts")
    if counts is None or counts.shape != (len(columns),) or counts.dtype != np.int64:
        raise Damaged("the counts are not those of the columns")
    same = {field.name: getattr(found, field.name) for field in fields(found) if field.name != "activities"}
    return TrainingState(
        columns=columns, column_counts=counts, weights=weights, moments=_weights_under("moments", arrays), **same
    )


def _columns_to(columns: Sequences) -> dict[str, AnyArray]:
    codes, offsets = np.asarray(columns.codes, np.int32), np.asarray(columns.offsets, np.int64)
    return dict(zip(_COLUMNS, (codes, offsets), strict=True))


def _columns_from(labels: tuple[str, ...], arrays: Arrays) -> Sequences:
    codes, offsets = (arrays.get(name) for name in _COLUMNS)
    if codes is None or offsets is None or codes.ndim != 1 or offsets.ndim != 1:
        raise Damaged("the variants are missing")
    if codes.dtype != np.int32 or offsets.dtype != np.int64 or not 2 <= len(offsets) <= _WIDEST:
        raise Damaged("the variants are none")
    if offsets[0] != 0 or offsets[-1] != len(codes) or (offsets[1:] < offsets[:-1]).any():
        raise Damaged("the variants overlap")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(labels):
        raise Damaged("a variant has an activity without a name")
    return Sequences(labels, codes, offsets)


def _networks(columns: Sequences, configuration: Configuration) -> Networks:
    widths = (configuration.latent, configuration.noise)
    if not all(1 <= width <= _WIDEST for width in widths) or configuration.critic_hidden not in (0, 2):
        raise Misfit("there are no such networks")
    return Networks.of(len(columns), configuration)


def _check_weights(weights: Weights, networks: Iterable[Network]) -> None:
    expected: dict[str, tuple[int, ...]] = {}
    for network in networks:
        for layer in network.layers:
            weight, *others = network.names(layer)
            expected[weight] = (network.widths[layer], network.widths[layer + 1])
            expected |= dict.fromkeys(others, (network.widths[layer + 1],))
    found = {name: array.shape for name, array in weights.items()}
    if found != expected or any(array.dtype.kind != "f" for array in weights.values()):
        raise Damaged("the weights are not those of these networks")


def _prefix_names(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {f"{prefix}.{name}": np.asarray(array) for name, array in arrays.items()}


def _weights_under(prefix: str, arrays: Arrays) -> Weights:
    """Return the arrays of this prefix, as copies that can be trained on."""
    start = prefix + "."
    return {name.removeprefix(start): array.copy() for name, array in arrays.items() if name.startswith(start)}
