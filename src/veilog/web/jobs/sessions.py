"""Which browsers are let in, by which cookie.

The browser holds the cookie, the store only its digest: who reads the file cannot enter with it.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["Sessions"]

_LET_IN = 30 * 86400.0
"""Seconds after which a browser is asked for the token again."""


class Sessions(ABC):
    """The sessions in the records of the server."""

    @abstractmethod
    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def session(self, cookie: str, admitted: str) -> str | None:
        """Return the session of a cookie that was let in by ``admitted``, at most 30 days ago."""
        found = self._rows(
            "SELECT id FROM sessions WHERE cookie = ? AND admitted = ? AND created > ?",
            *(_digest(cookie), admitted, time.time() - _LET_IN),
        )
        return str(found[0][0]) if found else None

    def admit(self, cookie: str | None, admitted: str) -> str:
        """Let a browser in and return its new cookie.

        It finds the logs again that it had with the old one. The old one is worth nothing from now on: somebody may
        have planted it, who then would read what is brought later.
        """
        fresh = secrets.token_hex(32)
        values = (_digest(fresh), admitted, time.time())
        with self._writing() as connection:
            moved = "UPDATE sessions SET cookie = ?, admitted = ?, created = ? WHERE cookie = ?"
            if not cookie or connection.execute(moved, (*values, _digest(cookie))).rowcount == 0:
                made = "INSERT INTO sessions (cookie, admitted, created, id) VALUES (?, ?, ?, ?)"
                connection.execute(made, (*values, secrets.token_hex(16)))
        return fresh

    def let_out(self, session: str) -> None:
        """Let a browser in no more; what it brought stays."""
        with self._writing() as connection:
            connection.execute("UPDATE sessions SET admitted = '' WHERE id = ?", (session,))


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()[:32]
