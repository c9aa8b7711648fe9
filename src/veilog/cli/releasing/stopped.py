"""What is said of a command that was stopped, or whose result could not be shown: what it cost, and where it is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from veilog._files import mark
from veilog.cli.shared.terminal import CALL
from veilog.errors import VeilogError
from veilog.ledger.ledger import Data, Entry, Ledger
from veilog.privacy.account.figures import round_up, up


def cannot_be_undone(sentence: str) -> None:
    """Remember what is to be said, should the command fail or be stopped from now on."""
    CALL.get().done.append(sentence)


@contextmanager
def told_if_stopped(
    method: str,
    log: Data,
    ledger: Ledger | None,
    epsilon: Fraction | None,
    *,
    files: Sequence[Path] = (),
    goes_on: bool = False,
) -> Iterator[None]:
    """Ask and write in this block; where that is stopped, what was asked until then is spent, and is said. The entry is
    of this method; ``epsilon`` is what it may cost at most, None where nothing bounds it. Which of these ``files`` are
    written by then is said, too. A run that ``goes_on`` was entered when it began."""
    before = [mark(file) for file in files]
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        yield
    except KeyboardInterrupt:
        since = "" if goes_on else started
        written = [str(file) for file, was in zip(files, before, strict=True) if mark(file) != was]
        if written:
            cannot_be_undone(f"{' and '.join(written)} {'is' if len(written) == 1 else 'are'} written.")
        cannot_be_undone(_asked(epsilon) if ledger is None else _charged(method, ledger, log, since))
        raise


def _asked(epsilon: Fraction | None) -> str:
    if epsilon is None:
        return "The log may have been asked: count the release as made."
    return f"The log may have been asked: count epsilon = {up(round_up(epsilon))} as spent."


def _charged(method: str, ledger: Ledger, log: Data, since: str) -> str:
    """What the ledger says of what was asked of this log since then by this method."""
    try:
        account = ledger.account(log)
    except (VeilogError, KeyboardInterrupt):  # who waits for a ledger, and stops that, too, is told all the same
        return f"What was asked counts as spent; veilog ledger show {ledger.path} says how much."
    entries: tuple[Entry, ...] = () if account is None else account.entries
    begun = [entry for entry in entries if entry.method == method and entry.time >= since]
    if not begun or begun[-1].state == "withdrawn":
        return "Nothing was asked of the log, so nothing is spent."
    if begun[-1].epsilon is None:
        return f"The log was asked, which is entered in {ledger.path}."
    spent = up(round_up(begun[-1].epsilon))
    return f"The log was asked: epsilon = {spent} is spent, which is entered in {ledger.path}."
