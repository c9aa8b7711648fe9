"""The sentences of notes for the owner: what a note is made of is what a page recognises it by, in any language."""

from __future__ import annotations

from veilog._language import gettext_noop

__all__ = [
    "ALL_UNKNOWN",
    "ARTIFICIAL",
    "BEYOND",
    "BEYOND_ONE",
    "DAYS_ONLY",
    "EXPOSED",
    "FORMULAS",
    "NOBODY",
    "NOBODY_ONE",
    "NOTES",
    "NO_CASE",
    "OUTSIDE_RANGE",
    "OWN",
    "OWN_ONE",
    "SEVERAL",
    "SEVERAL_ONE",
    "SINGLE",
    "SOME_UNKNOWN",
    "UNCOUNTED",
    "UNCOUNTED_ONE",
    "UNDECLARED",
    "UNDECLARED_MORE",
    "UNDECLARED_ONE",
    "VALUES",
    "VALUES_MEANT",
    "VALUES_MORE",
    "VALUES_ONE",
]

NO_CASE = gettext_noop("No case of the log is in the part {value}: what was released is noise alone.")
SINGLE = gettext_noop("This release protects single cases. If a column tells persons, protect them instead: {columns}.")
EXPOSED = gettext_noop(
    "Among the {cases} cases of the log the protection level is {level}: delta = {delta} lets up to {exposed} of them "
    "come out as they are, on average. Take a delta of {enough} or less."
)
FORMULAS = gettext_noop(
    "A program for spreadsheets that opens the release as CSV or TSV takes what begins with =, +, - or @ for a "
    "formula: {names}. As a workbook (.xlsx), XES or Parquet it is text."
)
UNCOUNTED = gettext_noop(
    "Of {persons} persons {over} have more cases than count, {most} each: {left} of {cases} cases were not used."
)
UNCOUNTED_ONE = gettext_noop(
    "Of {persons} persons 1 has more cases than count, {most} each: {left} of {cases} cases were not used."
)
NOBODY_ONE = gettext_noop("1 of {cases} cases has no value of {column}, so it was not used.")
NOBODY = gettext_noop("{unnamed} of {cases} cases have no value of {column}, so they were not used.")
OWN_ONE = gettext_noop("1 of {cases} cases has no value of {column}: it counts as of a person of its own.")
OWN = gettext_noop(
    "{unnamed} of {cases} cases have no value of {column}: each counts as of a person of its own, and whoever has "
    "several of them is protected less."
)
SEVERAL_ONE = gettext_noop("1 of {cases} cases has several values of {column}, so it was not used.")
SEVERAL = gettext_noop("{unnamed} of {cases} cases have several values of {column}, so they were not used.")

UNDECLARED_ONE = gettext_noop(
    "The declaration leaves out 1 activity of the log: {counted}. {lost} of {events} events were not used."
)
UNDECLARED_MORE = gettext_noop(
    "The declaration leaves out {activities} activities of the log: {counted} and {more} more. {lost} of {events} "
    "events were not used."
)
UNDECLARED = gettext_noop(
    "The declaration leaves out {activities} activities of the log: {counted}. {lost} of {events} events were not used."
)
BEYOND_ONE = gettext_noop(
    "The declared length cuts {cut} of {cases} cases off after 1 event. {lost} of {events} events were not used."
)
BEYOND = gettext_noop(
    "The declared length cuts {cut} of {cases} cases off after {longest} events. {lost} of {events} events were not "
    "used."
)

VALUES_ONE = gettext_noop(
    "The declaration of {attribute} leaves out 1 value of the log: {counted}. {lost} of {known} ({share} %) count as "
    "having none."
)
VALUES_MORE = gettext_noop(
    "The declaration of {attribute} leaves out {values} values of the log: {counted} and {more} more. {lost} of "
    "{known} ({share} %) count as having none."
)
VALUES = gettext_noop(
    "The declaration of {attribute} leaves out {values} values of the log: {counted}. {lost} of {known} ({share} %) "
    "count as having none."
)
VALUES_MEANT = gettext_noop(
    "Some declared values of {attribute} are not in the log. Perhaps they are called so: {names}."
)
OUTSIDE_RANGE = gettext_noop(
    "{lost} of {known} values of {attribute} ({share} %) are outside the declared range, {low} to {high}: they count "
    "as its ends."
)

ARTIFICIAL = gettext_noop(
    "The times of the log are artificial, an hour apart from 1970 on: released times tell of these alone."
)
DAYS_ONLY = gettext_noop(
    "All times of the log are dates without a time of day: within a day its events are in the order of the rows, and "
    "the hours of released times are made up."
)
ALL_UNKNOWN = gettext_noop("No event of the log has a known time: the released times are noise alone.")
SOME_UNKNOWN = gettext_noop(
    "{unknown} of {events} events of the log ({share} %) have no known time: released times are those of the others, "
    "and all released events have one."
)

NOTES = (
    *(NO_CASE, SINGLE, EXPOSED, FORMULAS, UNCOUNTED_ONE, UNCOUNTED),
    *(NOBODY_ONE, NOBODY, OWN_ONE, OWN, SEVERAL_ONE, SEVERAL),
    *(UNDECLARED_ONE, UNDECLARED_MORE, UNDECLARED, BEYOND_ONE, BEYOND),
    *(VALUES_ONE, VALUES_MORE, VALUES, VALUES_MEANT, OUTSIDE_RANGE),
    *(ARTIFICIAL, DAYS_ONLY, ALL_UNKNOWN, SOME_UNKNOWN),
)
"""All of them; one that another contains comes before it."""
