"""Remarks that releases of several methods share.

They report what is too rare to stand out from the noise, how far numbers are off, and how much noise alone may have
made. All of it follows from public facts and from answers that were charged; nothing is asked for it.
"""

from __future__ import annotations

import math

from veilog.messages import Message
from veilog.methods._prefix_tree.tree import noise_threshold
from veilog.methods.method import Request, advised
from veilog.privacy.mechanisms.mechanism import KTruncatedGeometric, Laplace

_SELDOM = 0.025
"""Chance of noise above the reported bound, and of noise below it: 95 of 100 runs are within."""
_MUCH = 0.1
"""Share of a release from which on a remark reports how much of it noise may have made."""


def within(noise: Laplace) -> int:
    """Return by how much a number with this noise is off at most in 95 of 100 runs."""
    return noise_threshold(1, _SELDOM, noise)


def remark_rare_variants(
    request: Request, noise: KTruncatedGeometric, *, dropped: bool = True, counted: bool = False
) -> None:
    """Remark on variants too rare to be found, and on noisy numbers of the others.

    ``dropped``: their cases are left out with them. ``counted``: the noisy numbers of cases are released, so the remark
    reports how far they are off.

    A variant is found if its count and the noise X, within [-k, k], exceed k: of k + 1 + m cases iff X >= -m, so in at
    least half of the runs. Its count is off by more than q then with a chance of P(|X| > q, X >= -m) / P(X >= -m). This
    is at most P(|X| > q) where m >= q, and else at most P(X > q) / P(X >= 0), less than twice P(X > q).
    """
    least = noise.k + 1
    if least == 1:
        return  # every variant is found
    if counted:
        off = min(noise.k, within(Laplace(1 / noise.epsilon)))
        request.remark(Message("variants-rare-dropped-others-noisy", least=least, off=off))
    else:
        request.remark(Message(f"variants-rare-dropped{'-with-cases' if dropped else ''}", least=least))


def remark_rare_steps(request: Request, threshold: int) -> None:
    """Remark on steps as rare as noise that rarely exceeds this threshold, if above 0."""
    if not threshold:
        return
    request.remark(Message("steps-rare-like-noise", threshold=threshold + 1))


def remark_cases(request: Request, answered: int, variance: float, threshold: int) -> None:
    """Remark on the noisy number of cases, and on how little of them stands out.

    The answer, or sum of answers, has noise of this variance. If the threshold to stand out is at least half of the
    cases, the remark advises an epsilon that would do.

    Thresholds and epsilons are inversely proportional: with ten times the epsilon at which the threshold is all cases,
    a tenth of the cases stands out. The bound is that of Laplace noise, which has more far out than a sum of several
    has.
    """
    cases, off = max(1, answered), max(1, math.ceil(math.log(20) * math.sqrt(variance / 2)))
    if 2 * threshold < cases:
        code = "noisy-answers-one-case" if cases == 1 else "cases-noisy-number"
        request.remark(Message(code, cases=cases, off=off))
    else:
        needed = float(request.epsilon) * 10 * threshold / cases
        code = "noisy-answers-one-case-few" if cases == 1 else "cases-noisy-number-and-rest"
        request.remark(Message(code, cases=cases, off=off, advised=advised(needed)))


def remark_made_by_noise(request: Request, noise: Laplace, bins: int, released: int, *, steps: bool = False) -> None:
    """Remark on how much of a release noise alone made, if that is much.

    The release has ``released`` cases, or ``steps``. They are the sum of this many counts, each released if above 0.

    A count c adds E[max(c + X, 0)] - c, which is the less, the larger c is: at most E[max(X, 0)], which is a / (1 -
    a**2) with a = exp(-1 / scale).
    """
    decay = float(noise.decay)
    made = min(float(released), bins * math.exp(-decay) / -math.expm1(-2 * decay))
    if not released or made < _MUCH * released:
        return
    if released == 1 and not steps:
        request.remark(Message("noise-made-only-case"))
    elif steps:
        request.remark(Message("noise-made-steps", made=made, steps=released))
    else:
        request.remark(Message("noise-made-cases", made=made, released=released))
