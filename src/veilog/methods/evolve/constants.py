"""Constants of ``evolve``, in one place so that an ablation can replace any.

They were found on three public logs (Sepsis, BPIC 2013 incidents, Receipt) and hold for all. Each is a number or a
function of public facts and noisy answers. None is chosen for a log.
"""

from __future__ import annotations

from dataclasses import dataclass

_USUAL_LENGTH = 60


def usual_length(longest: int) -> int:
    """Return the usual longest case, where no case is longer than ``longest``.

    It serves decisions that need some length. Mutants have room for as many events even where no walk is longer.
    """
    return min(_USUAL_LENGTH, longest)


@dataclass(frozen=True)
class Aim:
    """Aim of a structured release: price and cap of its distance to the fine one.

    Both go by the part of the votes that is noise: where that is large, little is lost by moving cases.
    """

    price: float
    """F that outweighs a distance of that part, or of a little more."""
    cap: float
    """Largest distance, as a multiple of that part."""


@dataclass(frozen=True)
class Constants:
    """All constants of the method; ``g`` is epsilon times the noisy number of cases."""

    max_length: int = 200
    """Cut of cases and prototypes if no length is declared; loops without a known end stop here."""
    most_activities: int = 5000
    """Most activities: a larger alphabet has to be mapped to a smaller one first."""
    wide_from: int = 64
    """Number of activities from which the wide stage first looks for frequent ones."""
    largest_log: int = 1_000_000
    """Cases of the largest log expected: a budget too small even for it is refused."""
    fewest_g: float = 20.0
    """Epsilon times cases below which noise leaves nothing of a log."""
    fewest_cases: int = 20
    """Smallest number of cases that is assumed."""
    estimate_cases: bool = True
    """True if the totals of relations and votes help to estimate the number of cases."""
    relations_bias: float = 0.15
    """Relative error of the relations' total as an estimate of the number of cases."""

    count_share: float = 0.03
    low_g: float = 150.0
    high_g: float = 700.0
    """Size at which lam is 1; it is 0 at ``low_g``, and grows with the logarithm of g."""
    relations: tuple[tuple[float, float], tuple[float, float]] = ((4.0, 0.75), (100.0, 0.12))
    """Share of the relations at two sizes ``g / (A + 1) ** 1.5``: few bits suffice for many cases in each cell."""
    relations_exponent: float = 1.5
    """Exponent of A + 1 in that size; with 0 the share goes by g alone."""
    low_until: float = 0.5
    """Value of lam below which the log is *low*: one round of votes, a linear program."""
    growth: float = 1.5
    """Factor by which each round of votes uses more epsilon than the one before."""
    theta: float = 0.90
    """Threshold of kept relations over ``b ln(A + 1)``; b is their noise scale."""

    covered_from: float = 2 / 3
    """Part of all relations in kept cells below which the linear program is used, too."""

    perturbed: int = 32
    """Most linear programs of perturbed answers, averaged where the log is *low*."""
    perturbed_by: float = 0.5
    """Scale of the perturbation over that of the answers' own noise."""

    contribution: int = 5
    """Most that a case adds to relations and repeats (trigrams, presences) together."""
    once_below: float = 0.02
    """Part of its occurrences, or of its possible cases, that must repeat an activity.

    If fewer cases repeat it, or fewer than the scale of the noise, it occurs at most once.
    """
    beyond: float = 3.0
    """An activity repeats all the same if its surplus over the cases that can have it is more deviations of noise."""
    scale_bits: int = 20
    """Contributions are multiples of ``2 ** -scale_bits``."""
    norm_bits: int = 8
    """L2 norms are rounded up to multiples of ``2 ** -norm_bits``."""

    wide_presence: tuple[float, float] = (0.25, 0.15)
    wide_relations: tuple[float, float] = (0.50, 0.40)
    """Shares of presences and relations if wide, at g = 1200 and at g = 3600."""
    wide_g: float = 1200.0
    wide_keep: float = 3.0
    """Noise scales above which the wide stage keeps an activity."""

    triple_shares: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3, 0.4)
    """Shares of the rest after the relations; triples get the best one, or none.

    Smaller shares find only frequent triples, and noise makes up the rest.
    """
    memory: float = 0.1
    """Expected part of the variance after y that the state before y decides."""
    most_of_triples: int = 64
    """Most activities for which triples are queried: more have too many triples."""

    repeats: bool | None = None
    """True if repeats are queried; by default where noise leaves something of them."""

    least_doubt: float = 0.02
    """Likelihood, by the relations, from which cases without repeats are sampled, too, if repeats are not queried."""

    concentration_variants: int = 5
    concentrated_from: float = 0.60
    """Part of all cases in so many most frequent variants from which a log is *concentrated*; a query, with a delta."""
    concentration_share: tuple[float, float, float, float] = (3.0, 6.0, 0.01, 0.15)
    """Share of that query: 3 ln(g/6) / g of epsilon, at least 6/g, from .01 to .15.

    With a share of x/g the answer is wrong with a chance of about exp(-x/3)/2, which lowers the similarity by .1. The
    share itself lowers it by .1 of x/g. The sum of both is least.
    """
    real_share_alone: float = 0.80
    """Share of epsilon that finds real variants where nothing else is released."""
    doubtful_g: float = 30.0
    """Size below which a log is concentrated unless the answer is two scales lower."""
    real_share: float = 0.20
    """Share of epsilon that finds frequent real variants."""
    real_share_hopeless: float = 0.02
    """Share instead if finding variants is hopeless: it is better kept. It is 0 if relations can have all of delta."""
    hopeless_from: float = 0.20
    """Part of all cases that a variant would have to hold, with ``real_share``, above which finding it is hopeless."""
    beside_real: tuple[float, float, float] = (0.4, 0.25, 100.0)
    """Power, part and size for concentrated logs.

    Cases without a real variant become fewer with this power of the share. Votes put this part of them where they
    belong, and half of that at this g of the votes.
    """
    anchored_from: float = 0.70
    """Part of the cases in real variants from which, as in a concentrated log, no relations are queried."""
    anchored_imagined: float = 0.30
    """Sampled part of the first pool without relations, over what real variants leave."""
    anchored_trust: float = 4.0
    """Factor by which the pool without relations counts as more cases."""

    pool: int = 20_000
    candidates: int = 2000
    """Traces of the pool among which prototypes are chosen."""
    votes_for_prototype: float = 1.2
    """Cases times the round's epsilon for each prototype."""
    fewest_prototypes: int = 3
    most_prototypes: int = 1000
    prior_cases: tuple[float, float, float] = (5.0, 30.0, 3000.0)
    """Cases that the prior counts as: g/30, at least 5 and at most 3000."""
    fit_sweeps: int = 200
    candidates_release: int = 4000
    release_factor: float = 4.0
    """Variants sought in the fitted distribution for one prototype of the last round."""
    variants_of_prior: int = 1000
    """Fewest variants sought in a prior that the votes confirm."""
    smallest_release: float = 0.06
    """Fewest cases of a released variant, times the epsilon of the last round."""

    chosen_draws: float = 3.0
    """Draws of a pool whose weight may be chance, where one of them was chosen."""
    diverse_steps: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1)
    """Least frequencies of edits' steps in the release, over the most frequent one from the same activity."""
    diverse_f: float = 0.01
    """Largest fall in F of the release's model at which the first of these frequencies is taken."""

    resampled: float = 0.40
    """Share of the second pool that is drawn again; the rest are mutants."""
    mutations: tuple[float, float, float, float, float] = (0.20, 0.15, 0.20, 0.15, 0.30)
    """Chances to delete, insert, move, substitute an event, and to cross two traces."""
    second_mutation: float = 0.40

    similarity: Aim = Aim(1.0, 0.15)
    models: Aim = Aim(0.25, 0.25)
    structure_noise: float = 0.05
    """Addition to the noise of the votes where a distance is priced."""
    structure_cap: float = 0.01
    """Addition to the largest distance: with hardly any noise a release may still move."""
    structure_levels: tuple[float, ...] = (0.0, 0.06, 0.15, 0.3, 0.5)
    """Levels of structures: activities repeated by a smaller part of the cases with them occur once."""
    structure_edges: tuple[float, ...] = (0.0, 0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25)
    """Thresholds of structures: edges up to this part of the most frequent one from the same activity are left out."""
    structure_sizes: tuple[int, ...] = (80, 40, 15)
    """Numbers of variants of structures, in addition to as many as are nearest to some case."""
    structure_mass: float = 0.03
    """Part of the samples that must have a structure, or it is not tried."""
    structure_work: int = 10_000_000
    """Most work of judging: prefixes of the fine release times activities times models."""
    structure_fewest: int = 4
    """Fewest models that are judged, whatever that work."""
    miner_noise: float = 0.2
    """Noise threshold with which models are discovered: the usual one."""
    judged_events: int = 30_000
    """Events of the fine release's most frequent traces by which models are judged.

    With a third of it, or without a limit, releases of three simulated chains (3,000 to 10,000 cases) were the same.
    """


DEFAULTS = Constants()
