"""What is said of a release that was stopped, or whose result could not be shown: what it cost, and where it is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager

from veilog.cli.shared.terminal import CALL
from veilog.errors import VeilogError
from veilog.ledger.ledger import Entry, Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.account.figures import round_up, up
from veilog.releasing.plan import Plan

__all__ = ["cannot_be_undone", "told_if_stopped"]


def cannot_be_undone(sentence: str) -> None:
    """Remember what is to be said, should the command fail or be stopped from now on."""
    CALL.get().done.append(sentence)


@contextmanager
def told_if_stopped(planned: Plan, log: EventLog | StoredLog | Variants, ledger: Ledger | None) -> Iterator[None]:
    """Ask and write in this block; where that is stopped, what was asked until then is spent, and is said."""
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        yield
    except KeyboardInterrupt:
        cannot_be_undone(_asked(planned) if ledger is None else _charged(ledger, log, started))
        raise


def _asked(planned: Plan) -> str:
    if not planned.bounded:
        return "The log may have been asked: count the release as made."
    return f"The log may have been asked: count epsilon = {up(round_up(planned.epsilon))} as spent."


def _charged(ledger: Ledger, log: EventLog | StoredLog | Variants, started: str) -> str:
    """What the ledger says of a release of this log that was begun since then."""
    try:
        account = ledger.account(log)
    except VeilogError:
        return f"What was asked counts as spent; veilog ledger show {ledger.path} says how much."
    begun: list[Entry] = [] if account is None else [entry for entry in account.entries if entry.time >= started]
    if not begun or begun[-1].state == "withdrawn":
        return "Nothing was asked of the log, so nothing is spent."
    if begun[-1].epsilon is None:
        return f"The log was asked, which is entered in {ledger.path}."
    spent = up(round_up(begun[-1].epsilon))
    return f"The log was asked: epsilon = {spent} is spent, which is entered in {ledger.path}."
