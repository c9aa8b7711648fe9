"""What a release of evolve says about itself: from public facts and from what was answered with noise."""

from __future__ import annotations

from veilog.logs.variants import Variants
from veilog.methods.evolve.chain import Shortened
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.method import Request, advised
from veilog.privacy.account.guarantee import up

_FEWER = "Fewer activities would do more than a larger epsilon."


def remark(request: Request, plan: EvolvePlan, shortened: Shortened, structured: bool) -> None:
    """Say what is wrong with the release, which budget would do, and last what it is: from public facts and the noisy
    number of cases."""
    s = plan.settings
    kept = float(plan.epsilon / request.epsilon)
    wide = plan.wide and not plan.anchored
    enough = s.wide_g if wide else s.high_g
    if plan.g < enough and (wide or plan.low):
        needed = enough / plan.cases / kept
        request.remark(
            f"About {plan.cases:.0f} cases (a noisy number, within {plan.within:.0f} in 95 of 100 runs) are few for an "
            f"epsilon of {up(request.epsilon)} a case: expect what is frequent, and little of what is rare. "
            f"{_FEWER if wide else advised(needed)}"
        )
    if plan.anchored:
        request.remark(
            "Few variants seem to hold most cases: what is imagined starts from those that are certain to be real, and "
            f"activities that none of them has are left out ({shortened.size} of {plan.activities} are there)."
        )
    elif plan.wide:
        request.remark(
            f"{plan.activities} activities are many: the release is a sketch of the {shortened.size} that seem "
            "frequent, its traces are too short and most directly-follows pairs are missing. Map activities to fewer "
            "ones, e.g. to the upper levels of a hierarchy, for more than a sketch."
        )
    request.remark(
        "The release consists of weighted synthetic prototypes: imagined variants, each standing for the cases near "
        "it. That a variant is in it does not say that any case had it."
    )
    if structured:
        request.remark(
            "Rare steps and repetitions may be left out of it, so that a model can be discovered from it; for=detail "
            "keeps them."
        )


def remark_real(request: Request, released: Variants, real: Variants) -> None:
    """Say what is certain of real variants, from the answer that found them and the release."""
    if len(real) == 0:
        request.remark("No variant is frequent enough to be certain that it is real: delta and its share are spent.")
        return
    counts = released.to_dict()
    found = set(real.sequences)
    cases = sum(counts[sequence] for sequence in found)
    one = len(found) == 1
    are, they = ("is", "it") if one else ("are", "each of them")
    text = (
        f"With a delta, {len(found)} of the released variants {are} certain to be real, for {cases} cases: {they} "
        "occurs in the log."
    )
    imagined = max((count for sequence, count in counts.items() if sequence not in found), default=0)
    if max(counts[sequence] for sequence in found) > imagined:
        text += (
            f" No other released variant has more than {imagined} cases."
            if one
            else f" All released variants of more than {imagined} cases are among them."
        )
    request.remark(text)


def remark_unasked(request: Request) -> None:
    """Say that no real variants were asked for."""
    request.remark(
        "No variant could be frequent enough to be certain that it is real, so none was asked for: all of delta makes "
        "the noise of relations narrower."
    )
