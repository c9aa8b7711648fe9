"""TraVaG: train a generator of variants once, then draw from it without the log.

M. Rafiei, F. Wangelik, M. Pourbafrani, W.M.P. van der Aalst, "TraVaG: Differentially Private Trace Variant Generation
Using GANs", CAiSE Forum 2023.

A case is a one-hot row over the variants (the columns). An autoencoder learns to code the columns, a generator learns
codes, and a critic compares what the decoder makes of them with the cases. Certified, the columns are released first,
with noisy counts; the critic's gradients on the cases are clipped and noised; all else is computed from what was
released. As published, the columns and the encoder are raw: nothing can be derived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods.method import EpsilonAndDelta, Request, our_method
from veilog.methods.settings import Choices, LargestLog, Range, Settings
from veilog.methods.travag.draws import draws, sample
from veilog.methods.travag.private_training import train_certified
from veilog.methods.travag.published_training import train_as_published
from veilog.methods.travag.settings import (
    CERTIFIED,
    PROGRAM,
    PUBLISHED,
    Configuration,
    Networks,
    Trained,
    TrainingState,
)
from veilog.methods.travag.steps import Checkpoint
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
        Range(0.01, 0.97),
    ] = CERTIFIED.columns_share
    outside: Annotated[
        Literal["nearest", "drop"], "cases of variants that cannot be drawn: counted in the nearest, or dropped"
    ] = "nearest"
    critic_steps: Annotated[int, "noised steps of the critic", Range(1, 1_000_000)] = CERTIFIED.critic_steps
    critic_rate: Annotated[float | None, "chance of a case to take part in a step", Range(1e-6, 1)] = (
        CERTIFIED.critic_rate
    )
    autoencoder_steps: Annotated[int, "noised steps of the autoencoder", Range(0, 1_000_000)] = (
        CERTIFIED.autoencoder_steps
    )
    autoencoder_share: Annotated[
        float, "share of the gradients' budget for the autoencoder's noised steps", Range(0, 0.99)
    ] = CERTIFIED.autoencoder_share
    free_generator_steps: Annotated[
        int, "steps of the generator on released numbers, which use no budget", Range(1, 100_000)
    ] = CERTIFIED.free_generator_steps
    largest_log: LargestLog = CERTIFIED.largest_log

    def to_json(self) -> dict[str, Any]:
        """Return the settings by name; ``settings`` only where they are the program's."""
        told = super().to_json()
        return told if self.settings == "program" else {key: told[key] for key in told if key != "settings"}


def configure(settings: TravagSettings, *, as_published: bool) -> Configuration:
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
    """Train the networks within the request's (epsilon, delta).

    ``checkpoint`` gets the state before every noised step and after the last. Certified it costs exactly the request's
    (epsilon, delta). If no variant is frequent enough to be a column, there is nothing to train, which is an error.
    """
    trained = _train_model(curator, request, configuration, resume, checkpoint or (lambda state: None))
    if trained is None:
        raise ParameterError("travag-no-variant-frequent", parameter="epsilon")
    return trained


def travag(curator: Curator, request: Request, settings: TravagSettings) -> Variants:
    """Train, and return as many cases as the log has: certified by its noisy count."""
    configuration = configure(settings, as_published=request.as_published)
    trained = _train_model(curator, request, configuration, None, lambda state: None)
    if trained is None:
        return Variants.from_dict({})
    return trained.variants(sample(trained, trained.cases, noise.generator(curator.randomness)))


def _train_model(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> Trained | None:
    state = (train_as_published if request.as_published else train_certified)(
        curator, request, configuration, resume, checkpoint
    )
    if state is None:
        return None
    kept = ("generator.", "decoder.")
    return Trained(
        columns=state.columns,
        weights={name: array for name, array in state.weights.items() if name.startswith(kept)},
        configuration=configuration,
        cases=state.cases,
    )


TRAVAG = our_method("travag", travag, TravagSettings, budget=EpsilonAndDelta())
