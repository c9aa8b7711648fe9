"""TraVaG: train a generator of variants once, then draw from it without the log.

M. Rafiei, F. Wangelik, M. Pourbafrani, W.M.P. van der Aalst, "TraVaG: Differentially Private Trace Variant Generation
Using GANs", CAiSE Forum 2023.

A case is a one-hot row over the variants (the columns). An autoencoder learns to code the columns, a generator learns
codes, and a critic compares what the decoder makes of them with the cases. Certified, the columns are released first,
with noisy counts; the critic's gradients on the cases are clipped and noised; all else is computed from what was
released. As published, the columns and the encoder are raw: nothing can be derived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods.method import EpsilonAndDelta, Method, Request
from veilog.methods.settings import Bounds, Choices, LargestLog, Settings
from veilog.methods.travag.certified import begin, learn
from veilog.methods.travag.draws import by_chance
from veilog.methods.travag.networks import forward, sigmoid
from veilog.methods.travag.plan import refuse_unaffordable
from veilog.methods.travag.published import train_as_published
from veilog.methods.travag.run import Checkpoint
from veilog.methods.travag.settings import (
    CERTIFIED,
    PROGRAM,
    PUBLISHED,
    Configuration,
    Networks,
    Trained,
    TrainingState,
)
from veilog.methods.travag.training import normals
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

__all__ = [
    "PROGRAM",
    "PUBLISHED",
    "TRAVAG",
    "Configuration",
    "Networks",
    "Trained",
    "TrainingState",
    "TravagSettings",
    "configured",
    "draws",
    "sample",
    "train",
    "travag",
]


_DRAWS = 1024


@dataclass(frozen=True, kw_only=True)
class TravagSettings(Settings):
    """Settings of TraVaG; the paper's own are configurations by name."""

    configuration: Annotated[str | None, "as published: the paper's settings by name", Choices(tuple(PUBLISHED))] = None
    settings: Annotated[
        Literal["paper", "program"], "as published: settings as the paper has them, or its authors' program"
    ] = "paper"
    critic: Annotated[Literal["linear", "deep"], "linear, or deep as in the paper"] = "linear"
    columns_share: Annotated[
        float | None,
        "share of epsilon that finds the variants; by default more, the smaller delta is",
        Bounds(0.01, 0.97),
    ] = CERTIFIED.columns_share
    outside: Annotated[
        Literal["nearest", "drop"], "cases of variants that cannot be drawn: counted in the nearest, or dropped"
    ] = "nearest"
    critic_steps: Annotated[int, "noised steps of the critic", Bounds(1, 1_000_000)] = CERTIFIED.critic_steps
    critic_rate: Annotated[float | None, "chance of a case to take part in a step", Bounds(1e-6, 1)] = (
        CERTIFIED.critic_rate
    )
    autoencoder_steps: Annotated[int, "noised steps of the autoencoder", Bounds(0, 1_000_000)] = (
        CERTIFIED.autoencoder_steps
    )
    autoencoder_share: Annotated[
        float, "share of the gradients' budget for the autoencoder's noised steps", Bounds(0, 0.99)
    ] = CERTIFIED.autoencoder_share
    free_generator_steps: Annotated[
        int, "steps of the generator on released numbers, at no cost", Bounds(1, 100_000)
    ] = CERTIFIED.free_generator_steps
    largest_log: LargestLog = CERTIFIED.largest_log

    def to_json(self) -> dict[str, Any]:
        """Return the settings by name; ``settings`` only where they are the program's."""
        told = super().to_json()
        return told if self.settings == "program" else {key: told[key] for key in told if key != "settings"}


def configured(settings: TravagSettings, *, as_published: bool) -> Configuration:
    """Return the configuration that the settings ask for."""
    name, whose = settings.configuration, settings.settings
    if as_published:
        known = PROGRAM if whose == "program" else PUBLISHED
        if name not in known:
            raise ParameterError("travag-configuration-missing", parameter="configuration", names=", ".join(known))
        usual = replace(TravagSettings(), configuration=name, settings=whose).to_json()
        changed = [key for key, value in settings.to_json().items() if value is not None and value != usual[key]]
        if changed:
            raise ParameterError("travag-setting-of-configuration", parameter=changed[0], name=name, changed=changed[0])
        return known[str(name)]
    if whose == "program":
        raise ParameterError("travag-guarantee-not-derivable", parameter="settings")
    if name is not None:
        raise ParameterError("travag-configuration-without-guarantee", parameter="configuration", name=name)
    given = {key: value for key, value in settings.to_json().items() if value is not None}
    critic = given.pop("critic", "linear")
    chosen = replace(CERTIFIED, critic_hidden=0 if critic == "linear" else 2, **given)
    if chosen.autoencoder_steps and not 0 < chosen.autoencoder_share < 1:
        raise ParameterError("travag-autoencoder-without-share", parameter="autoencoder_share")
    return chosen


def train(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    *,
    resume: TrainingState | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train the networks within the request's (epsilon, delta); ``checkpoint`` gets the state before every noised step
    and after the last.

    Certified it costs exactly the request's (epsilon, delta); where no variant is frequent enough to be a column there
    is nothing to train, which is an error.
    """
    trained = _trained(curator, request, configuration, resume, checkpoint or (lambda state: None))
    if trained is None:
        raise ParameterError("travag-no-variant-frequent", parameter="epsilon")
    return trained


def sample(trained: Trained, n: int, rng: np.random.Generator) -> IntArray:
    """How often each column is among ``n`` draws; in blocks, so the memory does not grow with ``n``."""
    counts = np.zeros(len(trained.columns), dtype=np.int64)
    for chosen in draws(trained, n, rng):
        counts += np.bincount(chosen, minlength=len(counts))
    return counts


def draws(trained: Trained, n: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """The columns of ``n`` draws, one after the other, in blocks."""
    networks = Networks.of(len(trained.columns), trained.configuration)
    place = _in_order_of_names(trained.columns) if trained.configuration.of_program else None
    for start in range(0, n, _DRAWS):
        rows = min(_DRAWS, n - start)
        code = forward(networks.generator, trained.weights, normals(rng, rows, trained.configuration)).output
        logits = forward(networks.decoder, trained.weights, code).output
        if trained.configuration.drawn:
            yield by_chance(logits, rng)
        elif place is not None:
            # several outputs may be rounded to 1, and the program takes the first by name
            yield place[sigmoid(logits)[:, place].argmax(axis=1)]
        else:
            # the largest output is the largest before its sigmoid
            yield logits.argmax(axis=1)


def _in_order_of_names(columns: Sequences) -> IntArray:
    """The columns in the order of their activities, written with commas between them."""
    return np.array(sorted(range(len(columns)), key=list(map(",".join, columns)).__getitem__), dtype=np.int64)


def travag(curator: Curator, request: Request, settings: TravagSettings) -> Variants:
    """Train, and draw as many cases as the log has: certified by its noisy count."""
    configuration = configured(settings, as_published=request.as_published)
    trained = _trained(curator, request, configuration, None, lambda state: None)
    if trained is None:
        return Variants.from_dict({})
    counts = sample(trained, trained.cases, noise.generator(curator.randomness))
    columns = trained.columns
    return Variants.from_arrays(columns.labels, columns.codes, columns.offsets, counts)


def _trained(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> Trained | None:
    if request.as_published:
        state = train_as_published(curator, request, configuration, resume, checkpoint)
    else:
        if resume is None:
            refuse_unaffordable(request.epsilon, request.delta, configuration)
        begun = begin(curator, request, configuration, resume, checkpoint)
        if begun is None:
            return None
        learn(begun)
        state = begun.state
    kept = ("generator.", "decoder.")
    return Trained(
        columns=state.columns,
        weights={name: array for name, array in state.weights.items() if name.startswith(kept)},
        configuration=configuration,
        cases=state.cases,
    )


TRAVAG = Method(
    name="travag",
    title="A trained model that cases are drawn from",
    advice=(
        "Trains for minutes. Take it where any number of cases shall be drawn later; for one release evolve or travas "
        "are simpler. It needs a delta."
    ),
    paper=(
        "Rafiei, Wangelik, Pourbafrani, van der Aalst: TraVaG: Differentially Private Trace Variant Generation Using "
        "GANs (2023)"
    ),
    budget=EpsilonAndDelta(),
    guarantee="(epsilon, delta) for one case, proven: released columns, noised gradients, every step charged",
    as_published="none: columns and encoder are raw; the remark says the rest",
    run=travag,
    settings=TravagSettings,
    draws=True,
    weighed="not weighed: trains a model first; take it to draw any number of cases later",
)
