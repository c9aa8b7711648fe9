"""What a release of evolve says about itself: from public facts and from what was answered with noise."""

from __future__ import annotations

from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.evolve.chain import Shortened
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.method import Request, advised
from veilog.privacy.account.guarantee import up

_FEWER = Message("evolve-fewer-activities-better")


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
            Message(
                "evolve-cases-few",
                cases=plan.cases,
                within=plan.within,
                up=up(request.epsilon),
                fewer=_FEWER if wide else advised(needed),
            )
        )
    if plan.anchored:
        request.remark(Message("evolve-few-variants-dominate", size=shortened.size, activities=plan.activities))
    elif plan.wide:
        request.remark(Message("evolve-release-sketch", activities=plan.activities, size=shortened.size))
    request.remark(Message("evolve-release-synthetic"))
    if structured:
        request.remark(Message("evolve-rare-steps-omitted"))


def remark_real(request: Request, released: Variants, real: Variants) -> None:
    """Say what is certain of real variants, from the answer that found them and the release."""
    if len(real) == 0:
        request.remark(Message("evolve-no-variant-certain"))
        return
    counts = released.to_dict()
    found = set(real.sequences)
    cases = sum(counts[sequence] for sequence in found)
    others = max((count for sequence, count in counts.items() if sequence not in found), default=0)
    largest = max(counts[sequence] for sequence in found) > others
    code = f"{'one-variant' if len(found) == 1 else 'variants'}-certain{'-and-largest' if largest else ''}"
    request.remark(Message(code, variants=len(found), cases=cases, others=others))


def remark_unasked(request: Request) -> None:
    """Say that no real variants were asked for."""
    request.remark(Message("evolve-real-not-asked"))
