"""Noised gradients of networks on one-hot cases: the query of a training.

An exact sample of the cases is taken. Their clipped gradients are summed in integers
(:mod:`veilog.privacy.mechanisms.clipped_sums`) and get exact discrete Gaussian noise
(:mod:`veilog.privacy.mechanisms.gaussian`). Its epsilon is derived in :mod:`veilog.privacy.mechanisms.accountant`.
Floats decide only in which direction an example's gradient points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.mechanisms.accountant import composed_epsilon, integer_variance
from veilog.privacy.mechanisms.clipped_sums import (
    GRID,
    Factors,
    Gradients,
    Outer,
    clip_sums,
    integer_sums,
    sums_to_floats,
)
from veilog.privacy.mechanisms.gaussian import discrete_gaussian
from veilog.privacy.mechanisms.mechanism import DiscreteGaussianSteps, NoisedSteps, Sensitivity
from veilog.privacy.mechanisms.noise import Randomness, fast
from veilog.privacy.mechanisms.sampling import poisson_counts

IntArray = npt.NDArray[np.int64]
FactorsOf = Callable[[IntArray], Factors]
"""Function from columns to factors, each row by itself.

The factors of a row depend only on that row's column and on public or already released numbers.
"""

LEAST_CLIP, MOST_CLIP = 1e-6, 1e6
"""Range of clipping bounds: beyond it, products with the bound do not fit floats of single precision."""
_CHECKED = 64
_SAME = 1e-3


class Training:
    """Steps of a training that are charged; a step beyond them is refused.

    Opened by :meth:`veilog.privacy.curator.Curator.training`, which charges the whole plan before the first step.
    """

    def __init__(
        self,
        counts: IntArray,
        plan: Sequence[NoisedSteps],
        clips: Sequence[float],
        taken: Sequence[int],
        source: Randomness,
        *,
        apart: bool = False,
    ) -> None:
        self._counts = counts
        self._plan = tuple(plan)
        self._clips = tuple(float(clip) for clip in clips)
        self._taken = list(taken)
        self._apart = apart
        # Without a guarantee to protect, millions of steps need not wait for the operating system.
        self._source = fast(source) if apart else source
        self._checked: set[int] = set()

    @property
    def plan(self) -> tuple[NoisedSteps, ...]:
        return self._plan

    @property
    def taken(self) -> tuple[int, ...]:
        """Number of steps already taken, for each part of the plan."""
        return tuple(self._taken)

    def step(self, part: int, factors: FactorsOf) -> Gradients:
        """Return one noised sum of clipped gradients over a Poisson sample of the cases.

        ``factors`` gets all columns, each once, whatever the sample; it must treat each row by itself. At the first
        step of each part a block of its rows is computed again, in another order and cut, and compared.

        Sensitivity: each case takes part with probability ``rate``, independently, by exact coins. The computation for
        a column (:func:`clip_sums`) is the same for every log. It depends on the columns, on earlier releases and on
        the clip, and not on how many cases a column has or who takes part. A case that takes part adds the integer
        vector of its column, whose L2 norm is at most ``2**GRID`` over all layers together. A case that does not adds
        nothing. Sums are exact, so a case changes them by at most that, and by integers. Every coordinate gets discrete
        Gaussian noise of the variance of :func:`veilog.privacy.mechanisms.accountant.integer_variance`. With it the
        step costs no more than the Poisson-subsampled Gaussian mechanism of ``noise_multiplier`` (adding or removing
        one case; proof there). It was charged with the plan.

        A training that was opened ``apart``, for which no guarantee is given, hands ``factors`` one row a sampled case
        instead, for losses that differ between cases of one column.
        """
        steps, clip = self._plan[part], self._clips[part]
        if self._taken[part] >= steps.steps:
            raise ParameterError("training-steps-used-up", parameter="steps", steps=steps.steps, name=steps.name)
        self._taken[part] += 1
        drawn = poisson_counts(self._counts, Fraction(steps.rate), self._source)
        if self._apart:
            columns = np.repeat(np.arange(len(drawn)), drawn)
            times = np.ones(len(columns), np.int64)
            if len(columns) == 0:  # the shape of the sums comes from the factors of any column, counted no times
                columns, times = np.zeros(1, np.int64), np.zeros(1, np.int64)
        else:
            columns, times = np.arange(len(drawn)), drawn
        asked = _call_factors(factors, columns)
        if not self._apart and part not in self._checked:
            _check_rows(factors, asked, columns, clip)
            self._checked.add(part)
        sums = integer_sums(clip_sums(asked, clip), times)
        variance = integer_variance(steps.noise_multiplier, GRID)
        for (weight, bias), terms in zip(sums, asked, strict=True):
            flat = weight.reshape(-1)
            flat += discrete_gaussian(variance, flat.size, self._source)
            if any(term.bias for term in terms):
                bias += discrete_gaussian(variance, bias.size, self._source)
        return sums_to_floats(sums, clip, [terms[0].errors.dtype for terms in asked])


def pay_for(
    plan: Sequence[NoisedSteps],
    clips: Sequence[float],
    taken: Sequence[int],
    epsilon: Fraction,
    delta: Fraction,
    account: ChargeAccount,
    *,
    apart: bool,
    purpose: str | Message,
) -> DiscreteGaussianSteps:
    """Charge all steps of a training before the first and return their mechanism.

    Refused, before any charge, are parts that do not fit and clipping bounds that floats of the networks cannot work
    with. So are plans over (``epsilon``, ``delta``) by the accountant.
    """
    if not len(plan) == len(clips) == len(taken) > 0:
        raise ParameterError("training-clip-missing", parameter="clips")
    if any(not 0 <= had <= part.steps for had, part in zip(taken, plan, strict=True)):
        raise ParameterError("training-steps-exceeded", parameter="taken")
    for clip in clips:
        if not LEAST_CLIP <= clip <= MOST_CLIP:
            raise ParameterError(
                "training-clip-out-of-range", parameter="clips", least_clip=LEAST_CLIP, most_clip=MOST_CLIP, clip=clip
            )
    cost = composed_epsilon(plan, delta, about=float(epsilon))
    if cost > float(epsilon):
        raise ParameterError(
            "training-over-budget", parameter="epsilon", cost=cost, delta=float(delta), epsilon=float(epsilon)
        )
    if apart:
        account.void("the cases of a column are trained on one by one, as they were sampled")
    sensitivity = Sensitivity(tuple(Fraction(float(clip)) for clip in clips), "L2", "clipped")
    return account.charge("gradients", purpose, DiscreteGaussianSteps(tuple(plan)), sensitivity, epsilon, delta)


def _call_factors(factors: FactorsOf, columns: IntArray) -> Factors:
    """Return the factors of these columns, or refuse without a text that reveals data."""
    found: Factors = []
    try:
        found = factors(columns.copy())
        fits = len(found) > 0 and all(_terms_fit(terms, len(columns)) for terms in found)
    except Exception:  # noqa: BLE001 - its text may reveal data
        fits = False
    if not fits:  # outside the handler, so that the error carries no other along
        raise ParameterError("training-function-failed", parameter="factors") from None
    return found


def _terms_fit(terms: Sequence[Outer], rows: int) -> bool:
    """Return True if a layer's terms agree, with a row a column and valid positions."""
    shape = terms[0].width, terms[0].errors.shape[1]
    for term in terms:
        if term.errors.shape != (rows, shape[1]) or term.width != shape[0] or len(term.inputs) != rows:
            return False
        if term.inputs.ndim == 1:
            whole = np.issubdtype(term.inputs.dtype, np.integer)
            if not whole or not ((term.inputs >= 0) & (term.inputs < term.width)).all():
                return False
        elif term.inputs.shape != (rows, term.width):
            return False
    return True


def _check_rows(factors: FactorsOf, asked: Factors, columns: IntArray, clip: float) -> None:
    """Refuse a function whose rows depend on each other.

    The first rows are computed again, backwards and in two parts. Another cut of float sums changes them by about their
    precision. ``_SAME`` of the largest number (or of the bound, where all are small) is a thousand times that. It is
    less than a rank, a row number or a mean would change.
    """
    order = columns[:_CHECKED][::-1]
    cut = (len(order) + 2) // 3
    for part in (order[:cut], order[cut:]):
        if len(part) and not _alike(asked, _call_factors(factors, part), part, clip):
            raise ParameterError("training-function-mixes-rows", parameter="factors")


def _alike(asked: Factors, again: Factors, part: IntArray, clip: float) -> bool:
    """Return True if these rows are the same again, but for rounding."""
    if [len(terms) for terms in asked] != [len(terms) for terms in again]:
        return False
    for terms, others in zip(asked, again, strict=True):
        for term, other in zip(terms, others, strict=True):
            for one, two in ((term.inputs, other.inputs), (term.errors, other.errors)):
                if one.shape[1:] != two.shape[1:]:
                    return False
                most = float(np.abs(one[np.isfinite(one)]).max(initial=0))
                if not np.isclose(one[part], two, rtol=0, atol=_SAME * max(most, clip), equal_nan=True).all():
                    return False
    return True
