"""What the library says of a value that cannot be, so that pages can say it in their language."""

from __future__ import annotations

from veilog._language import gettext_noop

__all__ = ["REFUSALS"]

REFUSALS = (
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
)
"""``attribute`` is the parameter and ``value`` what was given: placeholders of names, which are left as they are."""
