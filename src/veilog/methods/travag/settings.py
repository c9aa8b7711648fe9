"""TraVaG's settings and the results of a training.

They are every hyper-parameter, the paper's configurations by name, the trained generator and the state of a run that
can be resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from veilog._plain import tables_of
from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods.method import Request
from veilog.methods.travag.networks import LEAK, Network, Weights, initial
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.mechanisms.mechanism import NoisedSteps

_OF_PROGRAM = "program-"


@dataclass(frozen=True)
class Configuration:
    """Every hyper-parameter of a training, as plain numbers and words for JSON."""

    name: str = "default"
    """Name: "default", or the paper's log, epsilon and delta, e.g. bpic13-1-1e-6.
    Settings of the authors' program have ``program-`` before it."""
    # the networks
    latent: int = 128
    noise: int = 128
    critic_hidden: int = 0
    """Hidden layers of the critic: 2 is the paper's (2n/3 and n/3 wide), 0 a linear critic."""
    drawn: bool = True
    """True if the decoder's outputs are probabilities to draw a row's variant; else the largest wins."""
    # the budget, certified
    count_share: float = 0.02
    columns_share: float | None = None
    """Share of epsilon for the columns; None: from half at delta = 0.01 to 0.85 at 1e-6, see ``Budget``."""
    autoencoder_share: float = 0.0
    """Share of the gradients' epsilon for the autoencoder's noised steps."""
    columns_delta_share: float = 0.9
    outside: str = "nearest"
    """Cases of no column: counted in the nearest one, or dropped (drop)."""
    # noised steps
    autoencoder_rate: float | None = None
    """Sampling rate; None for an expected batch of ``autoencoder_batch`` by the noisy number of cases."""
    autoencoder_batch: float = 64
    autoencoder_steps: int = 0
    autoencoder_noise: float = 1.0
    """Noise multiplier; certified it is scaled until the cost is the requested one."""
    autoencoder_clip: float = 0.012
    critic_rate: float | None = 1.0
    critic_batch: float = 128
    critic_steps: int = 1
    critic_noise: float = 1.0
    critic_clip: float = 1.0
    critic_bound: float | None = None
    """Weights of the critic are cut to this size after each step."""
    critic_steps_per_generator: int = 15
    # the optimisers
    autoencoder_learning_rate: float = 0.005
    gan_learning_rate: float = 0.005
    # steps on released numbers, which use no epsilon
    free_autoencoder_steps: int = 300
    free_generator_steps: int = 400
    free_batch: int = 512
    fit_decoder: bool = True
    """True if the decoder goes on learning with the generator, on released numbers."""
    largest_log: int = 1_000_000
    """Cases of the largest log expected; a budget too small even for it is refused."""

    @property
    def of_program(self) -> bool:
        """True for the settings of the authors' program, by the name.

        Files of models keep every field of this class, so a new one would make existing files unreadable.
        """
        return self.name.startswith(_OF_PROGRAM)

    @property
    def nominal(self) -> tuple[str, str]:
        """The epsilon and delta of the paper."""
        _, epsilon, delta = self.name.removeprefix(_OF_PROGRAM).split("-", 2)
        return epsilon, delta


CERTIFIED = Configuration()

_AS_PUBLISHED = Configuration(
    critic_hidden=2, drawn=False, autoencoder_steps=20_000, critic_rate=None, critic_clip=0.022, critic_bound=0.01
)
_TABLES = tables_of(__package__, "configurations")
PUBLISHED: Mapping[str, Configuration] = {
    name: replace(_AS_PUBLISHED, name=name, **row) for name, row in _TABLES["supplement"].items()
}
PROGRAM: Mapping[str, Configuration] = {
    name: replace(known, name=_OF_PROGRAM + name, **_TABLES["notebooks"].get(name, {}))
    for name, known in PUBLISHED.items()
}
"""Settings of the authors' program, by the log, epsilon and delta that they are for."""


@dataclass(frozen=True)
class Networks:
    """The four networks over ``columns`` variants."""

    encoder: Network
    decoder: Network
    generator: Network
    critic: Network

    @staticmethod
    def of(columns: int, configuration: Configuration) -> Networks:
        n, d = columns, configuration.latent
        hidden = (n + d) // 2
        critic = [n]
        if configuration.critic_hidden == 2:
            critic += [max(1, 2 * n // 3), max(1, n // 3)]
        return Networks(
            encoder=Network("encoder", (n, hidden, d), ("tanh", "tanh")),
            # the decoder's last activation is applied to its output where it is needed: the losses want what is before
            decoder=Network("decoder", (d, hidden, n), ("tanh", "none")),
            generator=Network(
                "generator",
                (configuration.noise, d, d, d),
                ("tanh", "tanh", "tanh"),
                residual=True,
                normalised=configuration.of_program,
            ),
            critic=Network(
                "critic",
                (*critic, 1),
                (*["leaky"] * (len(critic) - 1), "none"),  # type: ignore[arg-type]
                leak=0.2 if configuration.of_program else LEAK,
            ),
        )

    def all(self) -> tuple[Network, ...]:
        return self.encoder, self.decoder, self.generator, self.critic

    @property
    def parameters(self) -> int:
        """Number of all weights, biases and gains."""
        return sum(network.parameters for network in self.all())


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained generator: all that sampling needs, and nothing of the log beyond it."""

    columns: Sequences
    """The variants it can give; sampling gives counts in this order."""
    weights: Weights
    """Weights of the generator and the decoder."""
    configuration: Configuration
    cases: int
    """Noisy number of cases of the log: how many to draw for a log of its size."""

    def variants(self, counts: IntArray) -> Variants:
        """Return so many cases of each column."""
        return Variants.from_arrays(self.columns.labels, self.columns.codes, self.columns.offsets, counts)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """State of an interrupted training: only released numbers, so it may be kept.

    Resume it once.
    """

    configuration: Configuration
    as_published: bool
    epsilon: str
    """Epsilon as an exact fraction."""
    delta: str
    columns: Sequences
    column_counts: IntArray
    """Noisy; zeros as published."""
    cases: int
    charges: tuple[Charge, ...]
    """Charges of the queries before the training."""
    plan: tuple[NoisedSteps, ...]
    taken: tuple[int, ...]
    """Noised steps of each part of the plan that were taken."""
    weights: Weights
    moments: Weights
    """Moments of the optimisers: functions of noised gradients."""

    @staticmethod
    def new(
        configuration: Configuration,
        request: Request,
        found: Variants,
        cases: int,
        plan: tuple[NoisedSteps, ...],
        rng: np.random.Generator,
        charges: tuple[Charge, ...] = (),
    ) -> TrainingState:
        """Return the state before the first step, with random weights.

        The variants ``found`` become columns.
        """
        networks = Networks.of(len(found), configuration).all()
        return TrainingState(
            configuration=configuration,
            as_published=request.as_published,
            epsilon=str(request.epsilon),
            delta=str(request.delta),
            columns=found.sequences,
            column_counts=np.zeros_like(found.counts) if request.as_published else found.counts,
            cases=cases,
            charges=charges,
            plan=plan,
            taken=(0,) * len(plan),
            weights={name: array for network in networks for name, array in initial(network, rng).items()},
            moments={},
        )

    def check_resumed(self, request: Request, configuration: Configuration) -> None:
        """Refuse to go on with what another run was asked for."""
        asked = (configuration, request.as_published, str(request.epsilon), str(request.delta))
        if (self.configuration, self.as_published, self.epsilon, self.delta) != asked:
            raise ParameterError("travag-run-of-other-configuration", parameter="checkpoint")

    @property
    def step(self) -> int:
        return sum(self.taken)

    @property
    def steps(self) -> int:
        return sum(part.steps for part in self.plan)
