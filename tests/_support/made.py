"""A model and a training state with random weights, without a training."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.travag.networks import initial
from veilog.methods.travag.settings import CERTIFIED, Networks, Trained, TrainingState
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.mechanism import NoisedSteps, Stated
from veilog.training import Model

LOG = Variants.from_dict({("a", "b"): 50, ("a", "ä", "c"): 30, ("b",): 15, ("c", "a", "c", "b"): 5})
CONFIGURATION = replace(CERTIFIED, latent=3, noise=2)


def trained(seed: int = 1) -> Trained:
    networks = Networks.of(len(LOG), CONFIGURATION)
    rng = np.random.default_rng(seed)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    return Trained(LOG.sequences, weights, CONFIGURATION, cases=97)


def model(seed: int = 1) -> Model:
    curator = Curator(LOG)
    curator.partitions("0.5", "1e-4")
    curator.count("0.1")
    guarantee = curator.guarantee(nominal_epsilon=1, nominal_delta="1e-4")
    return Model(
        "travag",
        False,
        {"configuration": None, "share": 0.5},
        trained(seed),
        guarantee,
        (Message("Mind this."),),
        "veilog",
    )


def state(taken: tuple[int, int] = (0, 0), seed: int = 1) -> TrainingState:
    rng = np.random.default_rng(seed)
    weights = {}
    for network in Networks.of(len(LOG), CONFIGURATION).all():
        weights.update(initial(network, rng))
    return TrainingState(
        configuration=CONFIGURATION,
        as_published=False,
        epsilon="1/3",
        delta="1/1000",
        columns=LOG.sequences,
        column_counts=LOG.counts,
        cases=97,
        charges=(Charge("count", Message("cases"), Stated(Message("noise")), Stated(Message("1")), Fraction(1, 3)),),
        plan=(NoisedSteps("autoencoder", 0.1, 1.5, 100), NoisedSteps("critic", 0.2, 2.0, 300)),
        taken=taken,
        weights=weights,
        moments={"critic.0.weight.r": np.ones((3, 2), np.float32), "decoder.steps": np.ones(1)},
    )
