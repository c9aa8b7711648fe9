"""The constants of ``evolve``, in one place so that an ablation can replace any of them.

They were found on three public logs (Sepsis, BPIC 2013 incidents, Receipt) and hold for all: each is a number or a
function of public facts and noisy answers. None is chosen for a log.
"""

from __future__ import annotations

from dataclasses import dataclass

_USUAL_LENGTH = 60


def usual_length(longest: int) -> int:
    """How long cases usually are at most, where none is longer than ``longest``: for decisions that must go by
    something, and the room that mutants have even where no walk is longer."""
    return min(_USUAL_LENGTH, longest)


@dataclass(frozen=True)
class Aim:
    """What a structured release is for: what being far from the fine release costs it, and how far it may be.

    Both go by the part of the votes that is noise: where that is large, little is lost by moving cases.
    """

    price: float
    """F that it has to be worth to be as far away as that part, or a little more."""
    cap: float
    """The largest distance, of that part."""


@dataclass(frozen=True)
class Constants:
    """Every constant of the method. ``g`` is epsilon times the noisy number of cases: the size that counts."""

    max_length: int = 200
    """Cases are cut to this for the chain, and prototypes are at most this long, where nothing else is declared: where
    noise hides how a loop ends, it ends here."""
    most_activities: int = 5000
    """Above this the alphabet has to be mapped to a smaller one first."""
    wide_from: int = 64
    """From so many activities on, the wide stage looks for the frequent ones first."""
    largest_log: int = 1_000_000
    """Cases of the largest log expected: a budget too small even for it is refused."""
    fewest_g: float = 20.0
    """Epsilon times cases below which noise leaves nothing of a log."""
    fewest_cases: int = 20
    """The number of cases is taken to be at least this."""
    estimate_cases: bool = True
    """Whether the totals of relations and votes help to estimate the number of cases."""
    relations_bias: float = 0.15
    """The total of the relations, as an estimate of the number of cases, is trusted to this part of itself."""

    count_share: float = 0.03
    low_g: float = 150.0
    high_g: float = 700.0
    """lam goes from 0 at ``low_g`` to 1 at ``high_g``, in the logarithm of g."""
    relations: tuple[tuple[float, float], tuple[float, float]] = ((4.0, 0.75), (100.0, 0.12))
    """Share of the relations at two sizes ``g / (A + 1) ** 1.5``: where there are many cases for each cell, few bits of
    budget tell enough about them."""
    relations_exponent: float = 1.5
    """Of A + 1 in that size; 0 lets the share go by g alone."""
    low_until: float = 0.5
    """Below this lam the log is *low*: one round of votes, a linear program."""
    growth: float = 1.5
    """Each round of votes costs so many times as much as the one before."""
    theta: float = 0.90
    """Cells of the relations are kept from ``theta b ln(A + 1)`` on, b the scale of their noise."""

    covered_from: float = 2 / 3
    """Where cells that are kept have a smaller part of all relations, the linear program is asked for, too."""

    perturbed: int = 32
    """Where the log is *low*, linear programs are solved for so many perturbed answers (at most), and their flows
    averaged;"""
    perturbed_by: float = 0.5
    """the scale of what perturbs them, over that of their own noise."""

    contribution: int = 5
    """A case adds at most this to all relations and repeats (trigrams, presences) together."""
    once_below: float = 0.02
    """An activity that fewer cases repeat than this part of its occurrences, or of the cases that can have it, occurs
    at most once, and so does one whose number of such cases is below the scale of its noise;"""
    beyond: float = 3.0
    """but not one that occurs more often than cases can have it by more than so many deviations of noise."""
    scale_bits: int = 20
    """Contributions are multiples of ``2 ** -scale_bits``,"""
    norm_bits: int = 8
    """and L2 norms are rounded up to multiples of ``2 ** -norm_bits``."""

    wide_presence: tuple[float, float] = (0.25, 0.15)
    wide_relations: tuple[float, float] = (0.50, 0.40)
    """Wide: shares at g = 1200 and at g = 3600."""
    wide_g: float = 1200.0
    wide_keep: float = 3.0
    """Wide: activities are kept above this many noise scales."""

    triple_shares: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3, 0.4)
    """Of what is left after the relations: triples are asked for the one that they are expected to pay best for, or
    not at all. Smaller shares tell of frequent ones only, and noise makes up the rest."""
    memory: float = 0.1
    """What is expected before it is known: what was before y decides this part of the variance of what follows y."""
    most_of_triples: int = 64
    """Among more activities no triples are asked for: there are too many of them."""

    repeats: bool | None = None
    """Whether repeats are asked for; by default where noise leaves something of them."""

    least_doubt: float = 0.02
    """Where repeats are not asked, cases without any are imagined, too, if that is so likely by the relations."""

    concentration_variants: int = 5
    concentrated_from: float = 0.60
    """With a delta it is asked whether so many of the most frequent variants hold this part of all cases, or more: the
    log is *concentrated* then."""
    concentration_share: tuple[float, float, float, float] = (3.0, 6.0, 0.01, 0.15)
    """The question costs 3 ln(g/6) / g of epsilon, at least 6/g, from .01 to .15 of it. With x/g the answer is wrong
    with a chance of about exp(-x/3)/2, which costs .1 of similarity; x/g costs .1 of itself: their sum is least."""
    real_share_alone: float = 0.80
    """The same where nothing else is released."""
    doubtful_g: float = 30.0
    """Below this g a log is concentrated unless the answer is two noise scales lower."""
    real_share: float = 0.20
    """Share of epsilon that finds frequent real variants,"""
    real_share_hopeless: float = 0.02
    """and where with that share"""
    hopeless_from: float = 0.20
    """a variant would have to hold this part of all cases to be found: it is better kept then, and nothing is asked
    where relations can have all of delta."""
    beside_real: tuple[float, float, float] = (0.4, 0.25, 100.0)
    """For concentrated logs: with which power of the share cases without a real variant become fewer, which part of
    them votes put where they belong, and at which g of the votes they put half of that."""
    anchored_from: float = 0.70
    """Where real variants are found for this part of the cases, or the log is concentrated, no relations are asked."""
    anchored_imagined: float = 0.30
    """Without relations, the part of the first pool that is imagined is so much of what real variants leave,"""
    anchored_trust: float = 4.0
    """and the pool counts as so many times more cases."""

    pool: int = 20_000
    candidates: int = 2000
    """Traces of the pool among which prototypes are chosen."""
    votes_for_prototype: float = 1.2
    """One prototype for so many cases times the round's epsilon."""
    fewest_prototypes: int = 3
    most_prototypes: int = 1000
    prior_cases: tuple[float, float, float] = (5.0, 30.0, 3000.0)
    """The prior counts as g/30 cases, at least 5 and at most 3000."""
    fit_sweeps: int = 200
    candidates_release: int = 4000
    release_factor: float = 4.0
    """Variants looked for in the fitted distribution, for one prototype of the last round."""
    variants_of_prior: int = 1000
    """Of a prior that the votes confirm so many variants are looked for, at least."""
    smallest_release: float = 0.06
    """A released variant stands for so many cases divided by the epsilon of the last round, at least."""

    chosen_draws: float = 3.0
    """What so many draws of a pool weigh may be chance, where a trace was chosen for being among them."""
    diverse_steps: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1)
    """Edits take steps that the release takes so often, over the most frequent one from the same activity:"""
    diverse_f: float = 0.01
    """the first of these for which F of the release's model falls by so much at most."""

    resampled: float = 0.40
    """Share of the second pool that is drawn again; the rest are mutants."""
    mutations: tuple[float, float, float, float, float] = (0.20, 0.15, 0.20, 0.15, 0.30)
    """Chances to delete, insert, move, substitute an event, and to cross two traces over."""
    second_mutation: float = 0.40

    similarity: Aim = Aim(1.0, 0.15)
    models: Aim = Aim(0.25, 0.25)
    structure_noise: float = 0.05
    """Added to the noise of the votes where a distance is priced,"""
    structure_cap: float = 0.01
    """and to the largest distance: a release of hardly any noise may be moved a little, too."""
    structure_levels: tuple[float, ...] = (0.0, 0.06, 0.15, 0.3, 0.5)
    """Structures: activities that a smaller part of the cases with them repeats occur once,"""
    structure_edges: tuple[float, ...] = (0.0, 0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25)
    """edges of at most so small a part of the most frequent one from the same activity are left out,"""
    structure_sizes: tuple[int, ...] = (80, 40, 15)
    """and so many variants are released, or as many as are nearest to some case."""
    structure_mass: float = 0.03
    """Structures that only a smaller part of what is imagined has are not tried."""
    structure_work: int = 10_000_000
    """So many models are judged that prefixes of the fine release times activities times models are at most this,"""
    structure_fewest: int = 4
    """but at least so many."""
    miner_noise: float = 0.2
    """The noise threshold with which models are discovered: the usual one."""
    judged_events: int = 30_000
    """Models are judged by the most frequent traces of the fine release that have so many events together. With a
    third of it, or without a limit, releases of three simulated chains (3,000 to 10,000 cases) were the same."""


DEFAULTS = Constants()
