"""Connections within bounds: of those that ask nothing, none stays long, and they never keep others out."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD = 10.0
"""Seconds within which a request must have come up to its body."""
_FILES = 4096
"""More open files than that this process does not need."""
_FEWEST = 16


class TimedConnection(H11Protocol):
    """A connection that is dropped if its request does not come in time.

    Where there are as many connections as ``limit_concurrency`` allows, a new one takes the place of that which has
    asked nothing for the longest time. If all are at work, uvicorn answers that the server is busy.
    """

    _late: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._watch()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            others: list[Any] = [other for other in self.connections if other is not self and not other._at_work]  # type: ignore[union-attr]
            if others:
                min(others, key=lambda other: other._idle_since).drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def drop(self) -> None:
        """End the connection at once."""
        self.connections.discard(self)
        self._forget()
        self.transport.abort()

    def _watch(self) -> None:
        """Of a request that has begun the rest must come in time; its body has a time of its own."""
        if self._at_work:
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(_HEAD, self.drop)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def connections_at_most() -> int:
    """Let this process open more files if it may, and return how many connections there is room for: each may need a
    file of its own beside it, and as many more are left for all else."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _FILES // 3
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return max(_FEWEST, (_FILES if soft == resource.RLIM_INFINITY else min(soft, _FILES)) // 3)
