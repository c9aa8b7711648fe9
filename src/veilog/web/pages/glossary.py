"""The field's words that pages cannot do without, explained at the foot of every page for whoever decides."""

from __future__ import annotations

from veilog._language import gettext, gettext_noop

__all__ = ["glossary"]

_WORDS = (
    gettext_noop("Event log: a list of what was done, for whom and when. Each entry is an event."),
    gettext_noop("Case: one run of the process, such as one stay of a patient, with all its events."),
    gettext_noop("Variant, path: an order of activities that one case or several cases follow."),
    gettext_noop("Directly-follows: one activity comes right after another. The map counts how often."),
    gettext_noop(
        "Differential privacy: a property of how a release is made; whoever is left out of the log, every possible "
        "release is nearly as likely as before."
    ),
    gettext_noop("ε (epsilon), budget: how much a release may tell about one case or person. Smaller is more private."),
    gettext_noop("δ (delta): what the chance of a result may exceed the bound of ε by. Many methods need none."),
    gettext_noop("Percentage points: from 50 % to 60 % are ten of them."),
    gettext_noop(
        "Noise (Laplace, Gaussian, geometric): random numbers added to an answer, so that no single case shows. They "
        "are named by how they are drawn; with a larger scale they are larger."
    ),
    gettext_noop("Mechanism: the way in which noise is drawn for an answer."),
    gettext_noop("Certificate: a file that says what is guaranteed, for whom, and from which questions that follows."),
    gettext_noop("Prefix: how a case begins, its first few activities."),
    gettext_noop("Prototype: a made-up path that stands for the cases that are most like it."),
    gettext_noop("Threshold: what is counted less often than this, with its noise, is left out."),
    gettext_noop("Median, quantile: half of the values are below the median; 80 % are below the 80 % quantile."),
    gettext_noop("Harmonic average: an average in which small values count most."),
    gettext_noop("Similarity: 1 where release and original have the same paths equally often, 0 where all differs."),
    gettext_noop("Case disclosure: how far a few known activities narrow down whose case it is. 1 leaves one case."),
    gettext_noop(
        "Singling out, linkability, inference: the three risks by which anonymisation is judged in Europe; to find "
        "somebody's case, to connect two cases of one person, to conclude something about somebody."
    ),
    gettext_noop(
        "Fitness, precision: two marks of a process model; how much of the log it explains, and how little else it "
        "allows."
    ),
    gettext_noop(
        "k-anonymity, t-closeness: promises about groups; everybody looks like some others. They do not hold against "
        "somebody who knows more."
    ),
    gettext_noop(
        "Critic, autoencoder, gradients: parts of a trained neural network and of its training, which some methods use."
    ),
    gettext_noop(
        "Rényi privacy, Poisson sampling: ways to calculate how little noise suffices for a budget, and to draw some "
        "of the cases by chance."
    ),
)


def glossary() -> list[tuple[str, str]]:
    """Return the words with their meanings in the language that is spoken now."""
    return [(word.strip(), meaning.strip()) for word, _, meaning in (gettext(said).partition(":") for said in _WORDS)]
