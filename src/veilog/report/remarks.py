"""What methods remark on a release, what questions are for, and the words for noise.

Sentences that :mod:`.stated` recognises, beside those of the guarantee, each translation of which was translated back.
A sentence that contains another comes before it: the first that fits is taken.
"""

from __future__ import annotations

from veilog._language import gettext_noop

__all__ = ["NOISE", "QUESTIONS", "REMARKS"]

REMARKS = (
    gettext_noop("By its own answers, the release cannot be distinguished from noise alone: do not use it."),
    gettext_noop(
        "The release consists of weighted synthetic prototypes: imagined variants, each standing for the cases near "
        "it. That a variant is in it does not say that any case had it."
    ),
    gettext_noop(
        "Rare steps and repetitions may be left out of it, so that a model can be discovered from it; for=detail "
        "keeps them."
    ),
    gettext_noop(
        "A second file, for {name}, was made of the same answers. Both together have the guarantee that each of them "
        "states."
    ),
    gettext_noop(
        "This is the file for {name}; another was made of the same answers. Both together have the guarantee that "
        "each of them states. This one has no times and no attributes."
    ),
    gettext_noop(
        "Few variants seem to hold most cases: what is imagined starts from those that are certain to be real, and "
        "activities that none of them has are left out ({kept} of {activities} are there)."
    ),
    gettext_noop(
        "{activities} activities are many: the release is a sketch of the {kept} that seem frequent, its traces are "
        "too short and most directly-follows pairs are missing. Map activities to fewer ones, e.g. to the upper levels "
        "of a hierarchy, for more than a sketch."
    ),
    gettext_noop(
        "About {cases} cases (a noisy number, within {off} in 95 of 100 runs) are few for an epsilon of {epsilon} a "
        "case: expect what is frequent, and little of what is rare. {advice}"
    ),
    gettext_noop("No variant is frequent enough to be certain that it is real: delta and its share are spent."),
    gettext_noop(
        "With a delta, {variants} of the released variants are certain to be real, for {cases} cases: each of them "
        "occurs in the log. All released variants of more than {others} cases are among them."
    ),
    gettext_noop(
        "With a delta, {variants} of the released variants are certain to be real, for {cases} cases: each of them "
        "occurs in the log."
    ),
    gettext_noop(
        "With a delta, 1 of the released variants is certain to be real, for {cases} cases: it occurs in the log. No "
        "other released variant has more than {others} cases."
    ),
    gettext_noop(
        "With a delta, 1 of the released variants is certain to be real, for {cases} cases: it occurs in the log."
    ),
    gettext_noop(
        "No variant could be frequent enough to be certain that it is real, so none was asked for: all of delta makes "
        "the noise of relations narrower."
    ),
    gettext_noop(
        "Every released variant is certain to be real: it occurs in the log. Its number of cases is about that of the "
        "cases that are nearest to it, not of those that have it."
    ),
    gettext_noop("No variant is frequent enough to be certain that it is real, so nothing is released."),
    gettext_noop(
        "Of the cases (events, where values change) that have a value, the part whose value noise alone may have "
        "changed, at most: {shares}."
    ),
    gettext_noop(
        "No range is declared for {attribute}: its dates are as far from the start of their case as any may be, before "
        "or after it. A range in days, such as -36500..0 for dates of birth, tells them more closely."
    ),
    gettext_noop(
        "Asked together: {attributes}. Of all others the release has each by itself, as if one told nothing of the "
        "other."
    ),
    gettext_noop(
        "No attributes were asked together, and none with the path of its case: the release has each by itself, as if "
        "one told nothing of the other. {advice}"
    ),
    gettext_noop("The values of {attributes} may be mostly noise. {advice}"),
    gettext_noop("The values of {attributes} may be mostly noise."),
    gettext_noop("No value of {attribute} is frequent enough for its budget: the attribute is left out."),
    gettext_noop("The release has no events, so it has no times."),
    gettext_noop(
        "No window was declared: cases start evenly over a made-up year (2000). Only gaps and hours are real."
    ),
    gettext_noop(
        "No window was declared: cases start evenly over a made-up year (2000). Only gaps and days of the week are "
        "real."
    ),
    gettext_noop("No window was declared: cases start evenly over a made-up year (2000). Only gaps are real."),
    gettext_noop("Hours of the day and days of the week are kept as far as they stand out of the noise."),
    gettext_noop(
        "Hours of the day are kept as far as they stand out of the noise. Days of the week are mostly noise here: they "
        "are made even."
    ),
    gettext_noop(
        "Days of the week are kept as far as they stand out of the noise. Hours of the day are mostly noise here: they "
        "are made even."
    ),
    gettext_noop("Hours of the day and days of the week are mostly noise here: they are made even."),
    gettext_noop(
        "The dates of {attributes} are as far from the start of their case as they were, and so in other years: cases "
        "start in a made-up one. Declare a window to have them in their own."
    ),
    gettext_noop(
        "The times are rough: their epsilon, {epsilon}, times about {cases} cases is below {enough}. {advice}"
    ),
    gettext_noop("The times are rough: their epsilon, {epsilon}, times about {cases} cases is below {enough}."),
    gettext_noop(
        "By noisy answers {part} % of the cases start outside the declared window. They are in the release, and start "
        "inside it: what they last and how many they are is real, when they start is not."
    ),
    gettext_noop(
        "How long events take is rough: the epsilon for it, {epsilon}, times about {cases} cases is below {enough} for "
        "each of {activities} activities."
    ),
    gettext_noop(
        "Variants that fewer than about {least} cases have are left out, with all their cases; of others the number of "
        "cases is off by {off} at most in 95 of 100 runs."
    ),
    gettext_noop("Variants that fewer than about {least} cases have are left out, with all their cases."),
    gettext_noop(
        "Variants that fewer than about {least} cases have are left out; their cases are counted among those that "
        "begin alike."
    ),
    gettext_noop("Variants that fewer than about {least} cases have are left out."),
    gettext_noop("Traces end where fewer than about {least} cases go on alike: what is rarer is left out."),
    gettext_noop("No trace has more than {depth} events: longer ones end there."),
    gettext_noop("No trace has more than 1 event: longer ones end there."),
    gettext_noop(
        "Steps from an activity to the next that fewer than about {least} cases take cannot be told from noise: the "
        "release need not have them, and may have some that nobody took."
    ),
    gettext_noop(
        "By noisy answers the log has about {cases} cases (within {off} in 95 of 100 runs), and what less than half of "
        "them have in common is lost. {advice}"
    ),
    gettext_noop("By noisy answers the log has about {cases} cases (within {off} in 95 of 100 runs)."),
    gettext_noop(
        "By noisy answers the log has about 1 case (within {off} in 95 of 100 runs), and what less than half of them "
        "have in common is lost. {advice}"
    ),
    gettext_noop("By noisy answers the log has about 1 case (within {off} in 95 of 100 runs)."),
    gettext_noop("Noise alone made up to about {made} of the {cases} released cases."),
    gettext_noop("Noise alone made up to about {made} of the {steps} released steps."),
    gettext_noop("Noise alone may have made the only released case."),
    gettext_noop("The delta was not needed: with {depth} levels noise without one is as narrow."),
    gettext_noop("{cases} cases without events are left out: they have no time and no transition."),
    gettext_noop("{events} events are earlier than the event before them; their time since it counts as 0."),
    gettext_noop("1 case without events is left out: it has no time and no transition."),
    gettext_noop("1 event is earlier than the event before it; its time since it counts as 0."),
    gettext_noop("Filtering keeps {kept} of {cases} cases at a guessing advantage of {advantage}."),
    gettext_noop(
        "Epsilons of the released times: {average} on average, {least} to {most}. Epsilon of each count: {count}."
    ),
    gettext_noop("No tree was fit enough, so nothing is released."),
    gettext_noop("The process tree: {tree}"),
    gettext_noop(
        "Each of {samples} samples holds a case with probability {rate}; within a sample the query {query} has epsilon "
        "{epsilon} and delta {delta}. What the query says of cases and epsilon is of a sample."
    ),
    gettext_noop(
        "Each of {samples} samples holds a case with probability {rate}; within a sample the query {query} has epsilon "
        "{epsilon}. What the query says of cases and epsilon is of a sample."
    ),
    gettext_noop(
        "The one sample holds a case with probability {rate}; within a sample the query {query} has epsilon {epsilon} "
        "and delta {delta}. What the query says of cases and epsilon is of a sample."
    ),
    gettext_noop(
        "The one sample holds a case with probability {rate}; within a sample the query {query} has epsilon {epsilon}. "
        "What the query says of cases and epsilon is of a sample."
    ),
    gettext_noop(
        "Libra's accountant: noise of scale b = {scale} in {lots} lots is (alpha, epsilon) = ({order}, {renyi}) Renyi "
        "private, epsilon = {epsilon} at delta = {delta}, were its assumptions met."
    ),
    gettext_noop("No variant has the {threshold} cases that Libra's clipping asks for."),
    gettext_noop("{traces} released traces of {variants} variants are too many for an optimal matching; it is greedy."),
    gettext_noop("Not released: {attributes}. Only the sensitive attribute leaves."),
    gettext_noop("Every case starts at 1970-01-01; its times are the released durations, added up."),
    gettext_noop("With t = 1 nothing bounds what the values of {attribute} tell."),
    gettext_noop("Not released: {attributes}. Only sensitive attributes that are named leave, and the life cycle."),
    gettext_noop("The times are those of the log: whoever knows one of them may recognise a case."),
    gettext_noop("Times count from 1970-01-01 on, in {time} since the case began."),
    gettext_noop("With c = 1 nothing bounds how surely {attributes} is told."),
    gettext_noop("There are too many frequent patterns to find the longest; shorter ones were taken for the scores."),
    gettext_noop("Of {found} variants found, the {most} most frequent can be drawn."),
    gettext_noop(
        "If columns, encoder and tuning were granted, the noised steps alone would cost epsilon = {spent} at delta = "
        "{delta}. The paper says {epsilon}, which is that of each network."
    ),
    gettext_noop(
        "If columns, autoencoder and tuning were granted, and if each row were taken by chance, the critic's noised "
        "steps alone would cost epsilon = {spent} at delta = {delta}, where the paper says {epsilon}. They are granted "
        "nothing: no guarantee can be derived."
    ),
    gettext_noop("{cases} of the released cases have no event; a CSV, TSV or workbook leaves them out."),
    gettext_noop("Nothing survived: the release is empty, and its budget is spent. Raise epsilon or delta."),
    gettext_noop("Nothing survived: the release is empty, and its budget is spent. Raise epsilon."),
    gettext_noop("Nothing survived: the release is empty."),
    gettext_noop("Only {cases} were looked at."),
    gettext_noop("Cases of which {column} names no single person were left out."),
    gettext_noop("Cases of which {column} names several people were left out."),
    gettext_noop("An epsilon of about {epsilon} would do."),
    gettext_noop("Fewer activities would do more than a larger epsilon."),
    gettext_noop("Attributes would need an epsilon of about {epsilon} for themselves, or fewer of them."),
    gettext_noop("Attributes would need an epsilon of about {epsilon} for themselves."),
    gettext_noop("They would need an epsilon of about {epsilon} for themselves."),
    gettext_noop(
        "No epsilon that is advised (2 at most) would do: collect more cases, or go by what is frequent alone."
    ),
)
"""Of methods, and of every release; and what they advise, which stands at their end."""

NOISE = (
    gettext_noop("{noise}; on a Poisson sample, rate {rate}, there epsilon {epsilon}"),
    gettext_noop("{noise}, in steps of {grid}; found iff above {threshold}"),
    gettext_noop("the place of the largest number with discrete Laplace noise, scale {scale}"),
    gettext_noop("discrete Laplace, scale {scale} in steps of {grid}"),
    gettext_noop("discrete Laplace, scale {scale}"),
    gettext_noop("discrete Laplace"),
    gettext_noop("k-truncated symmetric geometric, k = {k}, released iff above k"),
    gettext_noop("discrete Gaussian, {questions} questions composed together, standard deviation {low} to {high}"),
    gettext_noop("discrete Gaussian, {questions} questions composed together, standard deviation {width}"),
    gettext_noop("discrete Gaussian, standard deviation {width}"),
    gettext_noop("discrete Gaussian, composed by privacy loss distributions: {steps}"),
    gettext_noop("{sensitivity}, times {n} cases of a person"),
    gettext_noop("1 (one variant's count)"),
    gettext_noop("{by} values by 1 each"),
    gettext_noop("{by} (each number, clipped)"),
    gettext_noop("{by} (each number)"),
    gettext_noop("{by} ({norm}, clipped)"),
)
"""Mechanisms and sensitivities, as :mod:`veilog.privacy.account.guarantee` tells them."""

QUESTIONS = (
    gettext_noop("{purpose} ({n} bins)"),
    gettext_noop("{purpose} (1 bin)"),
    gettext_noop("{purpose} ({n} sums)"),
    gettext_noop("{purpose} (1 sum)"),
    gettext_noop("{purpose} ({n} variants)"),
    gettext_noop("{purpose} (1 variant)"),
    gettext_noop("{purpose} ({n} histograms)"),
    gettext_noop("{purpose} (1 histogram)"),
    gettext_noop("{purpose} ({n} questions)"),
    gettext_noop("{purpose} (1 question)"),
    gettext_noop("{purpose} ({n} tables)"),
    gettext_noop("{purpose} (1 table)"),
    gettext_noop("number of cases"),
    gettext_noop("number of cases, to suggest a method"),
    gettext_noop("cases of the most frequent variants"),
    gettext_noop("number of cases, for a twin"),
    gettext_noop("cases of the most frequent variants, for a twin"),
    gettext_noop("lengths of cases, for a twin"),
    gettext_noop("lengths of traces"),
    gettext_noop("frequent variants"),
    gettext_noop("frequent variants, to suggest a method"),
    gettext_noop("frequent real variants"),
    gettext_noop("variants that can be drawn"),
    gettext_noop("variants above the threshold k"),
    gettext_noop("variants above the threshold k, subquery {n} of {all}"),
    gettext_noop("votes for real variants"),
    gettext_noop("votes for prototypes, round {n}"),
    gettext_noop("cases with an activity"),
    gettext_noop("triples of following activities"),
    gettext_noop("directly-follows pairs"),
    gettext_noop("directly-follows relations"),
    gettext_noop("directly-follows relations and repeated activities"),
    gettext_noop("different pairs of cases"),
    gettext_noop("steps that candidate trees do not allow"),
    gettext_noop("prefixes of length {n}"),
    gettext_noop("prefixes of length 1 to {n}"),
    gettext_noop("cases by their longest surviving prefix"),
    gettext_noop("first activities, for the rules"),
    gettext_noop("activities and who follows whom, for the rules"),
    gettext_noop("pairs of activities of a case, for the rules"),
    gettext_noop("gradients of the critic"),
    gettext_noop("gradients of autoencoder and critic"),
    gettext_noop("gradients of decoder and critic"),
    gettext_noop("{attribute} by {other}, event by event"),
    gettext_noop("times: {names}"),
    gettext_noop("durations of cases"),
    gettext_noop("durations of cases by last activity and length"),
    gettext_noop("starts of cases by how long they last"),
    gettext_noop("parts of the window in which cases start"),
    gettext_noop("smaller parts of the window in which cases start"),
    gettext_noop("hours and days of the week, in 1/2520"),
    gettext_noop("hours and days of the week in which cases start, in 1/2520"),
    gettext_noop("cases of which all times are whole days, hours or minutes"),
    gettext_noop("parts of durations by place, by activity and by pair, in 1/2520"),
    gettext_noop("how long events take, by activity"),
    gettext_noop("events that begin before the one before ended, in all and by activity, in 1/2520"),
    gettext_noop("gaps of all directly-follows pairs"),
    gettext_noop("gaps of released directly-follows pairs"),
    gettext_noop("the activities that enough cases have"),
    gettext_noop("the pair of attributes that tells most"),
    gettext_noop("whether {attribute} tells cases apart"),
    gettext_noop("values of {attribute} with each activity"),
    gettext_noop("values of attributes"),
    gettext_noop("values of {attribute}"),
)
"""What questions are for. Of two attributes together it stays English: "by" may stand in any text."""
