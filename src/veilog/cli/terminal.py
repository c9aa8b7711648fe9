"""What is printed for people: a log's own words cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

__all__ = ["CALL", "Call", "SafeConsole", "error_line"]


@dataclass(frozen=True)
class Call:
    """One run of the command: what was called, and whether it is to be quiet."""

    command: str = ""
    quiet: bool = False


CALL: ContextVar[Call] = ContextVar("call", default=Call())  # noqa: B039 - frozen

_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_VISIBLE |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""Control characters and the signs that stand for them. An escape sequence in the name of an activity could otherwise
clear the screen, or show words that are not there."""


class SafeConsole(Console):
    """A console that shows control characters in texts in place of obeying them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else _shown(segment)


def _shown(segment: Segment) -> Segment:
    text: Any = segment.text
    return segment._replace(text=text.translate(_VISIBLE))


def error_line(console: Console, message: str) -> None:
    console.print(Text("Error: ", style="bold red") + Text(message), soft_wrap=True)
