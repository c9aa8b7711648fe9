"""What a release states of itself, in the language that is spoken.

The kernel stands alone and speaks English, as files and JSON do; its sentences are listed here, and recognised again
wherever they come from, as are the reasons that methods mark for translation. What is not recognised stays as it is.
"""

from __future__ import annotations

from veilog._language import gettext_noop, recognised
from veilog.logs.input.lifecycle import INSTEAD
from veilog.logs.provenance import ATTRIBUTES_TOGETHER, UNKNOWN
from veilog.releasing.owner.said import NOTES
from veilog.report.remarks import NOISE, QUESTIONS, REMARKS

__all__ = ["SENTENCES", "stated"]

SENTENCES = (
    gettext_noop("Nobody is protected by differential privacy."),
    gettext_noop("Nobody is protected to speak of."),
    gettext_noop(
        "It protects one case, such as one visit. It does not protect a person who has several, nor the staff who did "
        "the work."
    ),
    gettext_noop(
        "It protects one person with all the cases that count. It does not protect a group such as a family or a ward, "
        "nor the staff who did the work."
    ),
    gettext_noop("The set of activity labels is public; it was taken from the log, not declared."),
    gettext_noop("The length of the longest trace is public; it was taken from the log, not declared."),
    gettext_noop("The days on which the first and the last case start are public; taken from the log."),
    gettext_noop(
        "The names and types of attributes are public, and whether they belong to cases or to events; they were taken "
        "from the log."
    ),
    gettext_noop("No person has more than {n} cases; nothing checked it."),
    gettext_noop("A case of which {column} names nobody is of a person without other cases; nothing checked it."),
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
    gettext_noop(
        "logs that differ by adding or removing one person ({column} tells whose a case is; a case of which it names "
        "nobody is one person's), of whom at most {n} case count"
    ),
    gettext_noop(
        "logs that differ by adding or removing one person ({column} tells whose a case is; a case of which it names "
        "nobody is one person's), of whom at most {n} cases count"
    ),
    gettext_noop("{neighbours}; only {cases} were looked at"),
    gettext_noop("cases that started from {first} on and before {end} (UTC)"),
    gettext_noop("cases without a start time"),
    gettext_noop("cases that started in {period} (UTC)"),
    gettext_noop("cases that have no single {attribute}, or one called {value}"),
    gettext_noop("cases whose {attribute} is {value}"),
    gettext_noop("exact integer noise from the operating system's cryptographic source"),
    gettext_noop("exact integer noise from a seeded generator, for experiments only"),
    gettext_noop("the noise is not stated in the file"),
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
    UNKNOWN,
    # What holds of groups, instead of differential privacy.
    gettext_noop("Whoever knows {what} finds at least {n} cases of the release that match, or none."),
    gettext_noop("Whoever knows {what} finds at least 1 case of the release that matches, or none."),
    gettext_noop("at most 1 activity of a case"),
    gettext_noop("at most 1 activity of a case, repeated ones counted"),
    gettext_noop("at most 1 activity of a case in their order"),
    gettext_noop("at most 1 activity of a case in their order, with their times since its start in {time}"),
    gettext_noop("at most {n} activities of a case"),
    gettext_noop("at most {n} activities of a case, repeated ones counted"),
    gettext_noop("at most {n} activities of a case in their order"),
    gettext_noop("at most {n} activities of a case in their order, with their times since its start in {time}"),
    gettext_noop(
        "Does not protect against somebody who knows more than that (their times, the life cycle or any other "
        "attribute), a person with several cases, or what other releases of the same log tell in addition, nor hide "
        "that somebody is in the log."
    ),
    gettext_noop(
        "Does not protect against somebody who knows more than that (the life cycle or any other attribute), a person "
        "with several cases, or what other releases of the same log tell in addition, nor hide that somebody is in the "
        "log."
    ),
    gettext_noop(
        "Of the cases that match, at most the share {share} has the same value of {attributes} (numbers as intervals)."
    ),
    gettext_noop(
        "Does not protect against somebody who knows more than that (their times, the life cycle or any other "
        "attribute), nor against being told that a person has none of the values, or a value with a probability up to "
        "that share."
    ),
    gettext_noop(
        "Does not protect against somebody who knows more than that (the life cycle or any other attribute), nor "
        "against being told that a person has none of the values, or a value with a probability up to that share."
    ),
    gettext_noop("Every beginning of a trace and every complete trace of the release is that of at least {n} cases."),
    gettext_noop("Every beginning of a trace and every complete trace of the release is that of at least 1 case."),
    gettext_noop(
        "Does not protect against somebody who knows later activities only, times or other attributes; a person with "
        "several cases; or what other releases of the same log tell in addition, nor hide that somebody is in the log."
    ),
    gettext_noop(
        "After every beginning of a trace the values of {attribute} differ by at most {most} (earth mover's distance) "
        "from those of the same activity in the whole release."
    ),
    gettext_noop(
        "Does not protect against somebody who knows later activities only, times or other attributes; a person with "
        "several cases; or what other releases of the same log tell in addition, nor against whoever knows some of the "
        "values themselves: they are released as they are."
    ),
    gettext_noop(
        "The paper argues (Propositions 3.1, A.5 and A.7; veilog has not proved it) that an attacker's chance to guess "
        "right about one individual rises by at most {advantage}, for one question alone: whether the case took one "
        "given transition, when it started (within {days} days), or how long one of its steps took (within {seconds} "
        "seconds). Its attacker knows all other cases; activities, variants and the first and last time of the log "
        "count as public, cases and the times within a case as independent, and a prior as the share of the log's own "
        "values that are as near."
    ),
    gettext_noop(
        "The paper argues (Propositions 3.1, A.5 and A.7; veilog has not proved it) that an attacker's chance to guess "
        "right about one individual rises by at most {advantage}, for one question alone: whether the case took one "
        "given transition, when it started (within 1 day), or how long one of its steps took (within {seconds} "
        "seconds). Its attacker knows all other cases; activities, variants and the first and last time of the log "
        "count as public, cases and the times within a case as independent, and a prior as the share of the log's own "
        "values that are as near."
    ),
    gettext_noop(
        "Does not protect what several counts or times of the same case say together, whether a case with a rare "
        "variant is in the log at all, people with several cases, or logs released more than once."
    ),
)
"""With a placeholder where they have a number or a name."""


def stated(text: str) -> str:
    """Return a sentence of the kernel in the language that is spoken; any other text as it is."""
    return recognised(text, (*SENTENCES, *NOTES, *REMARKS, *NOISE, *QUESTIONS))
