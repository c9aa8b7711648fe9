"""What a release left out of its log, for the owner alone: said also where a command is to be quiet."""

from __future__ import annotations

from rich.text import Text

from veilog.cli.shared.terminal import CALL, SafeConsole
from veilog.releasing.owner.notes import tells_loss
from veilog.releasing.result import Release

__all__ = ["tell_losses"]


def tell_losses(released: Release) -> None:
    """Say in one line on stderr what was left out, if the command is quiet: of a job that runs every night nobody reads
    anything else, and a new activity, or a list that was mistyped, would be left out each night unseen."""
    if not CALL.get().quiet:
        return
    found = [note for note in released.owner_only.notes if tells_loss(note)]
    found += [f"Reading the log: {finding.dropped}." for finding in released.owner_only.findings if finding.dropped]
    if found:
        SafeConsole(stderr=True, highlight=False).print(Text(f"For you only: {' '.join(found)}"), soft_wrap=True)
