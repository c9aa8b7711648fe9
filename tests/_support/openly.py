"""Releases by an owner who declares labels and longest case, at any epsilon.

They are for tests about something else than the owner's declarations.
"""

from typing import Any

import veilog
from veilog.privacy.domain import Domain

__all__ = ["planned", "release"]


def planned(method: str, *, domain: Domain | None = None, **wanted: Any) -> veilog.ReleaseRequest:
    """Plan as :func:`veilog.plan` does, with all needed facts declared public."""
    said = (domain or Domain()).taken_from_log(["activities", "max_length"])
    return veilog.plan(method, domain=said, allow_no_protection=True, **wanted)


def release(log: Any, method: str, *, domain: Domain | None = None, **wanted: Any) -> veilog.Release:
    """Release as :func:`veilog.release` does, with all needed facts declared public."""
    said = (domain or Domain()).taken_from_log(["activities", "max_length"])
    return veilog.release(log, method, domain=said, allow_no_protection=True, **wanted)
