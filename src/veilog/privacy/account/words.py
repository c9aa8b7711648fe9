"""The mechanism and the sensitivity of a charge in words, for people and files; nothing is derived from these."""

from __future__ import annotations

from fractions import Fraction

from veilog.messages import Message, as_message
from veilog.privacy.mechanisms.mechanism import (
    DiscreteGaussianSteps,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisedSteps,
    NoisyMaximum,
    Sensitivity,
    Stated,
    Subsampled,
    Thresholded,
)

__all__ = ["mechanism_in_words", "sensitivity_in_words"]


def mechanism_in_words(mechanism: Mechanism, sensitivity: Sensitivity | Stated) -> Message:
    """Return what the noise is. Its scale is told as people calibrate it: the sensitivity over epsilon."""
    match mechanism:
        case Laplace(grid=grid):
            code = "noise-laplace-in-steps" if grid > 1 else "noise-laplace"
            return Message(code, scale=_scale(mechanism, sensitivity), grid=grid)
        case Thresholded(noise, above):
            if isinstance(noise, KTruncatedGeometric):
                return Message("noise-k-truncated", k=noise.k)
            scale, threshold = _scale(noise, sensitivity), above / noise.grid
            return Message("noise-above-threshold", scale=scale, grid=noise.grid, threshold=threshold)
        case NoisyMaximum(noise):
            scale = f"{float(noise.scale):g}"
            if isinstance(sensitivity, Sensitivity):
                scale = f"{2 * sensitivity.by[0]}/epsilon"
            return Message("noise-of-maximum", scale=scale)
        case GaussianRounds(noises, by):
            # Noise is in the units of what is counted finely; what a case changes is told in those of the answer.
            unit = by / sensitivity.by[0] if isinstance(sensitivity, Sensitivity) else Fraction(1)
            widths = sorted({noise.variance**0.5 / float(unit) for noise in noises})
            code = f"noise-gaussian{'-together' if len(noises) > 1 else ''}{'-of-widths' if len(widths) > 1 else ''}"
            return Message(code, questions=len(noises), low=widths[0], high=widths[-1])
        case DiscreteGaussianSteps(parts):
            return Message("noise-gaussian-steps", steps="; ".join(_steps(part) for part in parts))
        case Subsampled(of_sample, rate, epsilon):
            asked = mechanism_in_words(of_sample, sensitivity)
            return Message("noise-on-sample", noise=asked, rate=float(rate), epsilon=float(epsilon))
        case Stated(words):
            return as_message(words)


def sensitivity_in_words(sensitivity: Sensitivity | Stated, question: str, cases: int) -> Message:
    """Return by how much a case changes the answer to such a question, or so many cases of one person."""
    of_one = _of_one_case(sensitivity, question)
    return Message("sensitivity-of-person", sensitivity=of_one, n=cases) if cases > 1 else of_one


def _of_one_case(sensitivity: Sensitivity | Stated, question: str) -> Message:
    if isinstance(sensitivity, Stated):
        return as_message(sensitivity.words)
    norm = sensitivity.norm
    bounded = "" if sensitivity.bounded == "by itself" else f"-{sensitivity.bounded}"
    if norm == "L0":
        one = question == "partitions"
        return Message("sensitivity-one-count") if one else Message("sensitivity-values", by=sensitivity.by[0])
    if norm == "each":
        return Message(f"sensitivity-each{bounded}", by=str(sensitivity.by[0]))
    numbers = [f"{by}" if norm == "L1" else f"{float(by):g}" for by in sensitivity.by]
    return Message(f"sensitivity-in-norm{bounded}", by=", ".join(numbers), norm=norm)


def _scale(mechanism: Laplace, sensitivity: Sensitivity | Stated) -> str:
    return f"{float(mechanism.scale):g}" if isinstance(sensitivity, Stated) else f"{sensitivity.by[0]}/epsilon"


def _steps(part: NoisedSteps) -> str:
    how = "all cases" if part.rate == 1 else f"Poisson sampling at rate {part.rate:.6g}"
    steps = "1 step" if part.steps == 1 else f"{part.steps} steps"
    return f"{part.name}: {steps}, {how}, noise multiplier {part.noise_multiplier:.6g}"
