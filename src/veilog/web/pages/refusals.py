"""Refusals of the library on pages: their sentences for the catalogues, and fields of a form in place of options."""

from __future__ import annotations

import re
from collections.abc import Iterable

from veilog._language import gettext, gettext_noop, quoted

REFUSALS = (
    gettext_noop("{parameter} must be a whole number from {least} to {most}, not {value}."),
    gettext_noop("{parameter} must be a whole number, not {value}."),
    gettext_noop("{parameter} must be a number, not {value}."),
    gettext_noop("{parameter} must be a finite number, not {value}."),
    gettext_noop("{parameter} must be true or false, not {value}."),
    gettext_noop("{parameter} must be at least 0 and below 1, not {value}."),
    gettext_noop("{parameter} must be a share above 0 and below 1, not {value}."),
    gettext_noop("{parameter} must be above 0, not {value}."),
    gettext_noop("{parameter} must be at least {least}, not {value}."),
    gettext_noop("{parameter} must be at most {most}, not {value}."),
    gettext_noop("{parameter} cannot be {value}."),
    gettext_noop("{parameter} = {value} protects nobody; the largest accepted value is {most}."),
    gettext_noop("{parameter} = {value} is below the smallest supported value, {least}."),
    gettext_noop("{parameter} = {value} is out of range."),
    gettext_noop("{parameter} must be a number from {least} to {most}, not {value}."),
    gettext_noop("Method {query} has no parameter {attribute}."),
    gettext_noop("Method {query} needs an epsilon."),
    gettext_noop("Smaller means more private; 0.1 to 1 are usual."),
    gettext_noop("Possible: {names}."),
    gettext_noop("There is no method {query}."),
    gettext_noop("Methods: {names}."),
    gettext_noop("Did you mean {names}?"),
    gettext_noop("There is no variant method {query} to take as query."),
    gettext_noop("Parameters of the query are written name=value,name=value, not {value}."),
    gettext_noop("The unit {value} (--unit) protects persons, and needs a bound on the cases of one."),
    gettext_noop("Take what most of them have, e.g. 3: of those with more, so many cases are drawn at random."),
    gettext_noop("A bound on the cases of a person needs a unit other than the case."),
    gettext_noop("As unit name the column of the person, or 'person' if nobody has more cases than that."),
    gettext_noop("Which cases name nobody is known where a column names people only."),
    gettext_noop("Leave it away, or name the column of the person (--unit)."),
    gettext_noop("A delta cannot protect a person with {most} cases at so large an epsilon."),
    gettext_noop("Lower epsilon or max_cases, or take a method that needs no delta."),
    gettext_noop("People with several cases are protected by certified, differentially private releases only."),
    gettext_noop(
        "The log has a column called 'person', and the unit 'person' means that nobody has more cases than "
        "max_cases, whatever that column says."
    ),
    gettext_noop("The window must end after it starts."),
    gettext_noop("A window is of use with a share for times only."),
    gettext_noop("start_window is of use with a share for times only."),
    gettext_noop("start_window is START..END with dates like 2024-01-31, or log, not {value}."),
    gettext_noop("The window holds {number} weeks; at most {most} are supported."),
    gettext_noop("Declare a window of the years in which cases start."),
    gettext_noop("When events began is released with a share for times only."),
    gettext_noop("The range of {attribute} must go from a smaller to a larger number."),
    gettext_noop("The value {value} of {attribute} is declared twice."),
    gettext_noop("The activity {value} is declared twice."),
    gettext_noop("The declared length bound must be a whole number from 1 on, or 'log', not {value}."),
    gettext_noop("delta = {value} is too small; use 0 or at least {least}."),
    gettext_noop("Method {query} needs a delta above 0."),
    gettext_noop("Method {query} needs no delta; it costs epsilon only."),
    gettext_noop("Method {query} releases no variants that times or attributes could be added to."),
    gettext_noop("Take a method that releases variants, such as evolve."),
    gettext_noop("Times and attributes come with certified releases only."),
    gettext_noop("Add times, e.g. 0.3."),
    gettext_noop("Add --delta, e.g. 1e-6."),
    gettext_noop("Leave out --as-published."),
    gettext_noop("Leave it out, or add --as-published."),
    gettext_noop("Take less than one over the number of cases, e.g. --delta {value}."),
    gettext_noop("Add a share for times, e.g. --times 0.3, or leave the attribute out."),
    gettext_noop("Leave it out."),
    gettext_noop("{parameter} belongs to the certified release."),
    gettext_noop("As published, TraVaG needs the name of one of the paper's configurations."),
    gettext_noop(
        "At epsilon = {value} a prefix would need {number} cases to stand out from the noise, more than the "
        "{most} of the largest log expected, so nothing can survive."
    ),
    gettext_noop(
        "At epsilon = {value} a relation would have to occur in {number} cases to stand out from the noise, more "
        "than the {most} of the largest log expected, so nothing can survive."
    ),
    gettext_noop(
        "At epsilon = {value} noise drowns even a log of {number} cases, the largest expected, so nothing can survive."
    ),
    gettext_noop("From epsilon = {value} on something can; if the log is larger, say so with largest_log."),
    gettext_noop("A part is RULE=VALUE, not {value}."),
    gettext_noop("Such as month=2024-03, week=2024-W11, quarter=2024-Q1, year=2024, or ATTRIBUTE=VALUE."),
    gettext_noop("{value} is no span of days."),
    gettext_noop("'{value}' is no {column}."),
    gettext_noop("{value} holds no day."),
    gettext_noop("Its last day is excluded."),
    gettext_noop("Write {column}={value}."),
    gettext_noop("A share for attributes needs attributes."),
    gettext_noop("{parameter} is of use as published; certified, the noise follows from epsilon."),
    gettext_noop(
        "The releases so far protect {names}, and nothing bounds what they cost the unit {value}, so of a "
        "budget for it nothing would be left."
    ),
    gettext_noop("Name that unit, or leave it out."),
)
"""``value`` is what was given, and other placeholders names: they are left as they are."""
UNREADABLE = (
    gettext_noop("The file is empty."),
    gettext_noop("No column looks like the case."),
    gettext_noop("No column looks like the activity."),
    gettext_noop("No column looks like the timestamp."),
    gettext_noop("Several columns could be the case: {names}."),
    gettext_noop("Several columns could be the activity: {names}."),
    gettext_noop("Several columns could be the timestamp: {names}."),
    gettext_noop("Case {query}, activity {column} and timestamp {value} must be three columns."),
    gettext_noop("Two columns are called {column}."),
    gettext_noop("Rename one of them."),
    gettext_noop("{value} does not say whether it means day/month or month/day."),
    gettext_noop("Day and month change places: {value} and {column}."),
    gettext_noop("A timestamp cannot be read: {value}."),
    gettext_noop("Not one event is left."),
    gettext_noop("The column {column} holds {value}, not timestamps."),
    gettext_noop("There are {n} files in this zip: {names}."),
    gettext_noop("Unpack it and give the one that is the log, or pack that one alone."),
    gettext_noop("There is no file in this zip."),
    gettext_noop("The file in this zip is encrypted."),
    gettext_noop("Unpack it first, with its password."),
    gettext_noop("The zip cannot be read ({value})."),
    gettext_noop("The zip is damaged ({value})."),
    gettext_noop("Fetch or pack it again."),
    gettext_noop("The suffix of {value} in this zip is not known."),
    gettext_noop("Known suffixes: {names}."),
    gettext_noop("The file is called .gz but is not compressed with gzip."),
    gettext_noop("Take the suffix .gz off if it is plain, or compress it."),
    gettext_noop("The gzip data are truncated: the file ends too early."),
    gettext_noop("The gzip data are corrupt ({value})."),
    gettext_noop("Fetch or export the file again."),
    gettext_noop("This is not a text file."),
    gettext_noop("There is a NUL byte, so this is not a text file."),
    gettext_noop("Export the log as CSV, in UTF-8."),
    gettext_noop("Export the file again in UTF-8."),
    gettext_noop("The first line may be a title, or names of columns."),
    gettext_noop("This row has {n} fields, the header has {number}."),
    gettext_noop("The delimiter is {value}; a field that contains it needs quotes."),
    gettext_noop("A quote is opened and never closed."),
    gettext_noop("A quote stands in the middle of a field."),
    gettext_noop("This workbook has a password, or is one of Excel before 2007."),
    gettext_noop("Open it in Excel and save it as .xlsx without a password, or as .csv."),
    gettext_noop("This is no workbook of Excel ({value})."),
    gettext_noop("Export it again."),
    gettext_noop("No sheet of this workbook has a table with three columns."),
    gettext_noop("A log needs case, activity and time."),
    gettext_noop("The workbook has: {names}."),
    gettext_noop("The root element is <{value}>, not <log>: this is not an event log in XES."),
    gettext_noop("The XML ends too early, the file is truncated ({value})."),
    gettext_noop("This is not well-formed XML: {value}."),
    gettext_noop("This is no JSON ({value})."),
    gettext_noop("This JSON is no object-centric log."),
    gettext_noop("OCEL 2.0 has lists of events and of objects."),
    gettext_noop("Other JSON is not read: save a table as .csv."),
    gettext_noop("This is OCEL 1.0, which is not read."),
    gettext_noop("Convert it to OCEL 2.0 with pm4py: {value}."),
    gettext_noop("This is not a readable Parquet file ({value})."),
)
"""Why a file cannot be read, and what to do about it."""


_LABELS = {
    "activities": gettext_noop("Activities, one on each line"),
    "as-published": gettext_noop("As published"),
    "delta": gettext_noop("Small chance δ"),
    "domain": gettext_noop("Values that it may have, one on each line, or a range as 0..100"),
    "max-cases": gettext_noop("Cases of one person that count"),
    "max-length": gettext_noop("Longest possible case"),
    "part": gettext_noop("Part"),
    "times": gettext_noop("Share of the budget for times"),
    "unit": gettext_noop("The promise is for"),
}
"""What stands beside the field of an option."""
_OPTION = re.compile(
    r"--(?P<name>[a-z][a-z-]+)(?: NAME=a\|b\|c(?:, or NAME=LOW\.\.HIGH for numbers)?)?(?P<number> (?=\d))?"
)


def by_fields(sentences: Iterable[str]) -> str:
    """Return the sentences with the fields of the form in the place of options; what advises an option that no page has
    is left out, unless nothing else was said."""
    said = [_OPTION.sub(_field, sentence) for sentence in sentences]
    return " ".join([sentence for sentence in said if not _OPTION.search(sentence)] or said)


def _field(option: re.Match[str]) -> str:
    label = _LABELS.get(option["name"])
    return option[0] if label is None else quoted(gettext(label)) + (": " if option["number"] else "")
