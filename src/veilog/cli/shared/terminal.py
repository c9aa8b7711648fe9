"""Output for people and for programs: safe text in the terminal, results as JSON.

A log's own words cannot steer the terminal. It loads nothing that computes, so that it reports errors while that is
loaded.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from veilog._files import atomic_target, reason
from veilog._version import __version__
from veilog.errors import OutputError
from veilog.messages import Message


@dataclass(frozen=True)
class Call:
    """One run of the command: its name, its general options, and its progress."""

    command: str = ""
    quiet: bool = False
    overwrite: bool = False
    """True if existing files may be replaced."""
    done: list[Message] = field(default_factory=list)
    """Steps that cannot be undone, to report if the command is stopped or lacks room."""
    told: list[str] = field(default_factory=list)
    """Places of its result as JSON, which a later error must not replace."""
    signals: list[int] = field(default_factory=list)
    """Signals that stopped it, apart from Ctrl-C."""


CALL: ContextVar[Call] = ContextVar("call", default=Call())  # noqa: B039 - frozen

_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_VISIBLE |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
"""Control characters and the signs that stand for them.

Otherwise an escape sequence in the name of an activity could clear the screen, or show words that are not there. One
that reverses the direction of writing could show a name as another one.
"""


class SafeConsole(Console):
    """A console that shows control characters in texts in place of obeying them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else _show_segment(segment)

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError as error:
            self.on_broken_pipe()
            if not self.stderr:
                raise _unwritable(error) from error

    def on_broken_pipe(self) -> None:
        """Go on silently: a reader that went away (a pager, head) ends no requested work."""
        self.quiet = True
        nowhere(self.file)


def _show_segment(segment: Segment) -> Segment:
    text: Any = segment.text
    return segment._replace(text=text.translate(_VISIBLE))


def open_closed() -> None:
    """Open closed standard streams (``>&-``, as job schedulers do), so that use fails.

    Reading and writing fail as on a full disk. Otherwise a file would get the stream's number, with all its output.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDWR)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def nowhere(file: IO[str]) -> None:
    """Discard output to a file that cannot be written, or the last flush fails."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def put_out(text: str) -> None:
    """Write text to standard output.

    :class:`OutputError` if it has no room, BrokenPipeError without a reader.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        nowhere(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> OutputError:
    return OutputError("output-not-writable", reason=reason(error))


def error_line(console: Console, message: str) -> None:
    console.print(Text("Error: ", style="bold red") + Text(message), soft_wrap=True)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings, such as on a broken add-on, without the line of code."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = usual


SCHEMA = 1
"""Version of the JSON's form; it changes if programs would have to."""


def about() -> dict[str, object]:
    """Return the facts about the command that every result has."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"schema": SCHEMA, "command": CALL.get().command, "veilog": __version__, "time": now}


def write_json(value: object, target: str) -> None:
    """Write a value as JSON to a file, or to standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if target == "-":
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        except UnicodeEncodeError:  # escaped as it is, it would be no JSON
            text = json.dumps(value, indent=2, allow_nan=False) + "\n"
        with contextlib.suppress(BrokenPipeError):  # the reader went away; the work goes on
            put_out(text)
    else:
        # Private: it holds what only the data owner may know.
        with atomic_target(target, private=True, overwrite=CALL.get().overwrite) as file:
            file.write(text.encode(errors="backslashreplace"))


INTERRUPTED = 128 + signal.SIGINT


_AT_ONCE = 2.0
"""Seconds within which a second signal is the first again: ``timeout`` sends two."""


@contextlib.contextmanager
def end_at_once() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the process at once in this block, by the system.

    It is for imports. A native library that is loaded with too little memory may never come back to Python, which then
    hears nothing. Nothing has been done by then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextlib.contextmanager
def like_ctrl_c(*, last: bool = False) -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does in this block, also to wait for a better moment.

    If the block is the ``last`` work of a process, neither has an effect after it. By then all is done and reported,
    and the exit status must not become another.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[float] = []

    def told(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if heard and now - heard[-1] < _AT_ONCE:
            return
        heard.append(now)
        CALL.get().signals.append(number)
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):  # ignored, as in a process that a shell started in the background
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    finally:
        if last:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN if last else before or signal.SIG_DFL)


def stopped_by() -> int:
    """Return the exit status of a stopped command, which identifies the signal."""
    signals = CALL.get().signals
    return 128 + signals[-1] if signals else INTERRUPTED


def is_terminal() -> bool:
    """Return True if a user is there to answer a question."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
