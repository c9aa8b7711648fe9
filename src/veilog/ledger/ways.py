"""What a part of the cases counts as: the part, and the way in which its log was read."""

from __future__ import annotations

__all__ = ["MARK", "as_read", "named"]

MARK = "\x1f"
"""Between a part and a way."""


def as_read(part: object | None, way: str) -> str | None:
    """Return what a part counts as where its log was read in this way; empty if nobody knows."""
    return None if part is None else f"{part}{MARK}{way}" if way else str(part)


def named(part: str) -> str:
    """Return the part alone of what it counts as."""
    return part.partition(MARK)[0]
