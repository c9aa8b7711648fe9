"""TraVaG's trained generator and the state of its training as facts and arrays of a file, and back.

What comes back is checked as if a stranger had written it: every number in its range, every array of the shape that
the configuration asks for. So a file that was made to harm can give strange variants, but nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def trained_to(trained: Trained) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The facts and arrays of a trained generator; its guarantee is the caller's."""
    facts = {
        "configuration": to_plain(trained.configuration),
        "cases": trained.cases,
        "activities": list(trained.columns.labels),
    }
    return facts, {**_columns_to(trained.columns), **_named("weights", trained.weights)}


def trained_from(facts: Any, arrays: Arrays) -> Trained:
    """The generator of these facts and arrays; ``Damaged`` or ``Misfit`` where they do not fit together."""
    _keys(facts, "configuration", "cases", "activities")
    configuration = from_plain(Configuration, facts["configuration"])
    columns = _columns_from(facts["activities"], arrays)
    weights = _under("weights", arrays)
    networks = _networks(columns, configuration)
    _check_weights(weights, [networks.generator, networks.decoder])
    _nothing_else(arrays, [*_COLUMNS, *(f"weights.{name}" for name in weights)])
    return Trained(columns, weights, configuration, _cases(facts["cases"]))


def state_to(state: TrainingState) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The facts and arrays of a training in progress."""
    facts = {
        "configuration": to_plain(state.configuration),
        "as_published": state.as_published,
        "epsilon": state.epsilon,
        "delta": state.delta,
        "cases": state.cases,
        "activities": list(state.columns.labels),
        "charges": to_plain(state.charges),
        "plan": to_plain(state.plan),
        "taken": to_plain(state.taken),
    }
    arrays = {
        **_columns_to(state.columns),
        "column_counts": np.asarray(state.column_counts, np.int64),
        **_named("weights", state.weights),
        **_named("moments", state.moments),
    }
    return facts, arrays


def state_from(facts: Any, arrays: Arrays) -> TrainingState:
    """The state of these facts and arrays; ``Damaged`` or ``Misfit`` where they do not fit together."""
    names = "configuration as_published epsilon delta cases activities charges plan taken"
    _keys(facts, *names.split())
    configuration = from_plain(Configuration, facts["configuration"])
    columns = _columns_from(facts["activities"], arrays)
    weights = _under("weights", arrays)
    _check_weights(weights, _networks(columns, configuration).all())
    counts = arrays.get("column_counts")
    if counts is None or counts.shape != (len(columns),) or counts.dtype != np.int64:
        raise Damaged("the counts are not those of the columns")
    texts = [facts["epsilon"], facts["delta"]]
    if type(facts["as_published"]) is not bool or not all(isinstance(text, str) for text in texts):
        raise Misfit("facts of other types")
    taken = _list(facts["taken"])
    if not all(type(steps) is int and steps >= 0 for steps in taken):
        raise Misfit("numbers of steps are not whole numbers")
    return TrainingState(
        configuration=configuration,
        as_published=facts["as_published"],
        epsilon=facts["epsilon"],
        delta=facts["delta"],
        columns=columns,
        column_counts=counts,
        cases=_cases(facts["cases"]),
        charges=tuple(from_plain(Charge, charge) for charge in _list(facts["charges"])),
        plan=tuple(_steps(part) for part in _list(facts["plan"])),
        taken=tuple(taken),
        weights=weights,
        moments=_under("moments", arrays),
    )


_COLUMNS = ("columns.codes", "columns.offsets")


def _columns_to(columns: Sequences) -> dict[str, AnyArray]:
    codes, offsets = np.asarray(columns.codes, np.int32), np.asarray(columns.offsets, np.int64)
    return dict(zip(_COLUMNS, (codes, offsets), strict=True))


def _columns_from(labels: Any, arrays: Arrays) -> Sequences:
    names = _list(labels)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise Misfit("the activities are not distinct names")
    codes, offsets = (arrays.get(name) for name in _COLUMNS)
    if codes is None or offsets is None or codes.ndim != 1 or offsets.ndim != 1:
        raise Damaged("the variants are missing")
    if codes.dtype != np.int32 or offsets.dtype != np.int64 or not 2 <= len(offsets) <= _WIDEST:
        raise Damaged("the variants are none")
    if offsets[0] != 0 or offsets[-1] != len(codes) or (offsets[1:] < offsets[:-1]).any():
        raise Damaged("the variants overlap")
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(names):
        raise Damaged("a variant has an activity without a name")
    return Sequences(tuple(names), codes, offsets)


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


def _named(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {f"{prefix}.{name}": np.asarray(array) for name, array in arrays.items()}


def _under(prefix: str, arrays: Arrays) -> Weights:
    """The arrays of this prefix, as copies that can be trained on."""
    start = prefix + "."
    return {name.removeprefix(start): array.copy() for name, array in arrays.items() if name.startswith(start)}


def _nothing_else(arrays: Arrays, known: Iterable[str]) -> None:
    if set(arrays) - set(known):
        raise Damaged("there are arrays that no generator has")


def _keys(facts: Any, *names: str) -> None:
    if not isinstance(facts, dict) or facts.keys() != set(names):
        raise Misfit("facts are missing, or there are others")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit("a list is missing")
    return value


def _cases(value: Any) -> int:
    if type(value) is not int or not -_MOST_CASES <= value <= _MOST_CASES:
        raise Misfit("the number of cases is none")
    return value


def _steps(value: Any) -> NoisedSteps:
    try:
        return from_plain(NoisedSteps, value)
    except ParameterError as error:
        raise Misfit(str(error)) from None
