"""A command that is told to end (SIGTERM: a service that is stopped, ``timeout``) ends as by Ctrl-C: what was asked is
charged, what was half written is gone, and it says so."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from veilog.cli.shared.terminal import CALL

INTERRUPTED = 128 + signal.SIGINT
_AT_ONCE = 2.0
"""Seconds within which a second signal is the same one: ``timeout`` sends it to the process, and to its group."""


@contextmanager
def at_once() -> Iterator[None]:
    """Within this block SIGTERM and Ctrl-C end the process at once, and the system does that.

    For imports: a native library that is loaded with too little memory may never come back to Python, which then hears
    nothing. Nothing has been done by then.
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


@contextmanager
def like_ctrl_c(*, last: bool = False) -> Iterator[None]:
    """Within this block SIGTERM does what Ctrl-C does there, also where that is to wait for a better moment. Where the
    block is the ``last`` thing that a process does, neither is heard after it: all is done and said by then, and the
    exit status, which is not to become another, says so."""
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
        if not callable(handler):  # ignored, as of what a shell started in the background
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
    """Return the exit status of a command that was stopped, which says by what."""
    signals = CALL.get().signals
    return 128 + signals[-1] if signals else INTERRUPTED
