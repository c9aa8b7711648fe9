"""TraVaG: train a generator of variants once, then draw from it without the log.

M. Rafiei, F. Wangelik, M. Pourbafrani, W.M.P. van der Aalst, "TraVaG: Differentially Private Trace Variant Generation
Using GANs", CAiSE Forum 2023.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from veilog.methods.method import Request
from veilog.methods.travag_settings import Configuration, Networks, Trained, TrainingState
from veilog.privacy.curator import Curator

__all__ = ["Configuration", "Networks", "Trained", "TrainingState", "sample", "train"]

IntArray = npt.NDArray[np.int64]
Checkpoint = Callable[[TrainingState], None]


def train(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    *,
    resume: TrainingState | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train the networks within the request's (epsilon, delta); ``checkpoint`` gets the state now and then."""
    raise NotImplementedError


def sample(trained: Trained, n: int, rng: np.random.Generator) -> IntArray:
    """How often each column is among ``n`` draws; in blocks, so the memory does not grow with ``n``."""
    raise NotImplementedError
