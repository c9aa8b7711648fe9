"""The mechanism and the sensitivity of a charge in words, for people and files; nothing is derived from these."""

from __future__ import annotations

from fractions import Fraction

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


def mechanism_in_words(mechanism: Mechanism, sensitivity: Sensitivity | Stated) -> str:
    """Return what the noise is. Its scale is told as people calibrate it: the sensitivity over epsilon."""
    match mechanism:
        case Laplace(grid=grid):
            return _laplace(mechanism, sensitivity) + (f" in steps of 1/{grid}" if grid > 1 else "")
        case Thresholded(noise, above):
            if isinstance(noise, KTruncatedGeometric):
                return f"k-truncated symmetric geometric, k = {noise.k}, released iff above k"
            steps = f"in steps of 1/{noise.grid}; found iff above {above / noise.grid:.4g}"
            return f"{_laplace(noise, sensitivity)}, {steps}"
        case NoisyMaximum(noise):
            scale = f"{float(noise.scale):g}"
            if isinstance(sensitivity, Sensitivity):
                scale = f"{2 * sensitivity.by[0]}/epsilon"
            return f"the place of the largest number with discrete Laplace noise, scale {scale}"
        case GaussianRounds(noises, by):
            # Noise is in the units of what is counted finely; what a case changes is told in those of the answer.
            unit = by / sensitivity.by[0] if isinstance(sensitivity, Sensitivity) else Fraction(1)
            widths = sorted({noise.variance**0.5 / float(unit) for noise in noises})
            wide = f"{widths[0]:.4g}" + (f" to {widths[-1]:.4g}" if len(widths) > 1 else "")
            together = f"{len(noises)} questions composed together, " if len(noises) > 1 else ""
            return f"discrete Gaussian, {together}standard deviation {wide}"
        case DiscreteGaussianSteps(parts):
            each = "; ".join(_steps(part) for part in parts)
            return f"discrete Gaussian, composed by privacy loss distributions: {each}"
        case Subsampled(of_sample, rate, epsilon):
            asked = mechanism_in_words(of_sample, sensitivity)
            return f"{asked}; on a Poisson sample, rate {float(rate):g}, there epsilon {float(epsilon):.6g}"
        case Stated(words):
            return words


def sensitivity_in_words(sensitivity: Sensitivity | Stated, question: str, cases: int) -> str:
    """Return by how much a case changes the answer to such a question, or so many cases of one person."""
    together = f", times {cases} cases of a person" if cases > 1 else ""
    return _of_one_case(sensitivity, question) + together


def _of_one_case(sensitivity: Sensitivity | Stated, question: str) -> str:
    if isinstance(sensitivity, Stated):
        return sensitivity.words
    norm, bounded = sensitivity.norm, "" if sensitivity.bounded == "by itself" else f", {sensitivity.bounded}"
    if norm == "L0":
        return "1 (one variant's count)" if question == "partitions" else f"{sensitivity.by[0]} values by 1 each"
    if norm == "each":
        return f"{sensitivity.by[0]} (each number{bounded})"
    numbers = [f"{by}" if norm == "L1" else f"{float(by):g}" for by in sensitivity.by]
    return f"{', '.join(numbers)} ({norm}{bounded})"


def _laplace(mechanism: Laplace, sensitivity: Sensitivity | Stated) -> str:
    scale = f"{float(mechanism.scale):g}" if isinstance(sensitivity, Stated) else f"{sensitivity.by[0]}/epsilon"
    return f"discrete Laplace, scale {scale}"


def _steps(part: NoisedSteps) -> str:
    how = "all cases" if part.rate == 1 else f"Poisson sampling at rate {part.rate:.6g}"
    steps = "1 step" if part.steps == 1 else f"{part.steps} steps"
    return f"{part.name}: {steps}, {how}, noise multiplier {part.noise_multiplier:.6g}"
