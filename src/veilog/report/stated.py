"""What a release states of itself, in the language that is spoken.

The kernel stands alone and speaks English, as files and JSON do; its sentences are listed here, and recognised again
wherever they come from, as are the reasons that methods mark for translation. What is not recognised stays as it is.
"""

from __future__ import annotations

from veilog._language import gettext_noop, recognised
from veilog.logs.input.lifecycle import INSTEAD
from veilog.logs.input.reading import ATTRIBUTES_TOGETHER
from veilog.report.remarks import NOISE, QUESTIONS, REMARKS

__all__ = ["SENTENCES", "stated"]

SENTENCES = (
    gettext_noop("Nobody is protected by differential privacy."),
    gettext_noop("Nobody is protected to speak of."),
    gettext_noop("It protects one case, such as one visit, and not a person who has several."),
    gettext_noop("It protects one person with all the cases that count, and not a group such as a family or a ward."),
    gettext_noop("The set of activity labels is public; it was taken from the log, not declared."),
    gettext_noop("The length of the longest trace is public; it was taken from the log, not declared."),
    gettext_noop("The days on which the first and the last case start are public; taken from the log."),
    gettext_noop(
        "The names and types of attributes are public, and whether they belong to cases or to events; they were taken "
        "from the log."
    ),
    gettext_noop("No person has more than {n} cases; nothing checked it."),
    gettext_noop("This is one run: no copy of a checkpoint was resumed beside it."),
    gettext_noop("logs that differ by adding or removing one case"),
    gettext_noop("logs that differ by adding or removing one person with at most {n} case"),
    gettext_noop("logs that differ by adding or removing one person with at most {n} cases"),
    gettext_noop(
        "logs that differ by adding or removing one person ({column} tells whose a case is), of whom at most {n} case "
        "count"
    ),
    gettext_noop(
        "logs that differ by adding or removing one person ({column} tells whose a case is), of whom at most {n} cases "
        "count"
    ),
    gettext_noop("{neighbours}; only {cases} were looked at"),
    gettext_noop("cases that started from {first} on and before {end} (UTC)"),
    gettext_noop("cases without a start time"),
    gettext_noop("cases that started in {period} (UTC)"),
    gettext_noop("cases that have no single {attribute}, or one called {value}"),
    gettext_noop("cases whose {attribute} is {value}"),
    gettext_noop("exact integer noise from the operating system's cryptographic source"),
    gettext_noop("exact integer noise from a seeded generator, for experiments only"),
    gettext_noop("not stated in the file"),
    gettext_noop("not stated"),
    gettext_noop("nothing was asked of the data"),
    gettext_noop("seeded: whoever knows the seed can recompute the noise"),
    gettext_noop("the deltas of the questions add up to 1 or more"),
    gettext_noop("the file does not state a derived guarantee"),
    gettext_noop("the cases of a column are trained on one by one, as they were sampled"),
    gettext_noop(
        "The method {method} is of {package}, which is no part of veilog: that what it releases follows from the "
        "answers to its questions alone is that package's word."
    ),
    gettext_noop("Activities were grouped by {how} (SHA-256 {digest}), which is public."),
    INSTEAD,
    ATTRIBUTES_TOGETHER,
)
"""With a placeholder where they have a number or a name."""


def stated(text: str) -> str:
    """Return a sentence of the kernel in the language that is spoken; any other text as it is."""
    return recognised(text, (*SENTENCES, *REMARKS, *NOISE, *QUESTIONS))
