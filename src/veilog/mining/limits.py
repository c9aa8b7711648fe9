"""A bound on the time that discovery and replay take."""

from __future__ import annotations

import time

from veilog.errors import VeilogError


class OutOfTimeError(VeilogError):
    """Something was not done in the time that it was given."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"Not done after {seconds:g} seconds.")


class Clock:
    """The time that is left; long work asks it now and then."""

    def __init__(self, seconds: float = float("inf")) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Raise :class:`OutOfTimeError` when the time is over."""
        if time.monotonic() > self._end:
            raise OutOfTimeError(self.seconds)


UNLIMITED = Clock()
