"""What the library says of a value that cannot be, so that pages can say it in their language."""

from __future__ import annotations

from veilog._language import gettext_noop

__all__ = ["REFUSALS"]

REFUSALS = (
    gettext_noop("{attribute} must be a whole number from {least} to {most}, not {value}."),
    gettext_noop("{attribute} must be a whole number, not {value}."),
    gettext_noop("{attribute} must be a number, not {value}."),
    gettext_noop("{attribute} must be a finite number, not {value}."),
    gettext_noop("{attribute} must be true or false, not {value}."),
    gettext_noop("{attribute} must be at least 0 and below 1, not {value}."),
    gettext_noop("{attribute} must be a share above 0 and below 1, not {value}."),
    gettext_noop("{attribute} must be above 0, not {value}."),
    gettext_noop("{attribute} must be at least {least}, not {value}."),
    gettext_noop("{attribute} must be at most {most}, not {value}."),
    gettext_noop("{attribute} cannot be {value}."),
    gettext_noop("{attribute} = {value} protects nobody; the largest accepted value is {most}."),
    gettext_noop("{attribute} = {value} is below the smallest supported value, {least}."),
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
    gettext_noop("A value of {attribute} is declared twice."),
    gettext_noop("An activity is declared twice."),
    gettext_noop("The declared length bound must be a whole number from 1 on, or 'log', not {value}."),
    gettext_noop("delta = {value} is too small; use 0 or at least {least}."),
    gettext_noop("Method {query} needs a delta above 0."),
    gettext_noop("Method {query} needs no delta; it costs epsilon only."),
    gettext_noop("As published the method has no delta."),
    gettext_noop("Method {query} releases no variants that times or attributes could be added to."),
    gettext_noop("Take a method that releases variants, such as evolve."),
    gettext_noop("Times and attributes come with certified releases only."),
    gettext_noop("Add times, e.g. 0.3."),
    gettext_noop("Leave it out."),
    gettext_noop("{attribute} belongs to the certified release."),
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
    gettext_noop("{value} is no span of days."),
    gettext_noop("'{value}' is no {column}."),
    gettext_noop("{value} holds no day."),
    gettext_noop("Its last day is excluded."),
    gettext_noop("Write {column}={value}."),
)
"""``attribute`` is the parameter and ``value`` what was given: placeholders of names, which are left as they are."""
