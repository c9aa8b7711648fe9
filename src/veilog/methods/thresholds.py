"""What releases of several methods remark alike: what is too rare to stand out from the noise, by how much their
numbers are off, and how much of them noise alone may have made.

All of it follows from public facts and from answers that were paid for; nothing is asked for it.
"""

from __future__ import annotations

import math

from veilog.messages import Message
from veilog.methods._prefix_tree.tree import noise_threshold
from veilog.methods.method import Request, advised
from veilog.privacy.mechanisms.mechanism import KTruncatedGeometric, Laplace

_SELDOM = 0.025
"""The chance of noise further up than is said, and of noise further down: in 95 of 100 runs it is within."""
_MUCH = 0.1
"""From this part of a release on it is said how much of it noise may have made."""


def within(noise: Laplace) -> int:
    """Return by how much a number with this noise is off at most in 95 of 100 runs."""
    return noise_threshold(1, _SELDOM, noise)


def remark_rare_variants(
    request: Request, noise: KTruncatedGeometric, *, dropped: bool = True, counted: bool = False
) -> None:
    """Say which variants are too rare to be found; whether their cases are ``dropped`` with them; and of the others by
    how much the numbers of cases are off, where it is the noisy ones that are released (``counted``).

    A variant is found if its count and the noise X, within [-k, k], exceed k: of k + 1 + m cases iff X >= -m, so in at
    least half of the runs. Its count is off by more than q then with a chance of P(|X| > q, X >= -m) / P(X >= -m),
    which is at most P(|X| > q) where m >= q, and else at most P(X > q) / P(X >= 0), less than twice P(X > q).
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
    """Say which steps cannot be told from noise that rarely exceeds this threshold; with none all can."""
    if not threshold:
        return
    request.remark(Message("steps-rare-like-noise", threshold=threshold + 1))


def remark_cases(request: Request, answered: int, variance: float, threshold: int) -> None:
    """Say how many cases the log has by an answer, or a sum of answers, whose noise has this variance; and, where what
    stands out from the threshold is at least half of them, that this is little, and which epsilon would do.

    Thresholds and epsilons are inversely proportional: of ten times as much as makes the threshold all cases, a tenth
    of the cases stands out. The bound is that of Laplace noise, which has more far out than a sum of several has.
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
    """Say how much of what was released noise alone made, where that is much: of ``released`` cases, or ``steps``,
    which are the sum of so many counts that are each released if they are above 0.

    A count c adds what E[max(c + X, 0)] is beyond c, which is the less, the larger c is: at most E[max(X, 0)], which
    is a / (1 - a**2) with a = exp(-1 / scale).
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
