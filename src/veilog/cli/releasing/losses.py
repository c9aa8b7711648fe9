"""What a release leaves out of its log, confidential: confirmed at a terminal before anything is spent, and printed
also where a command is to be quiet."""

from __future__ import annotations

from rich.text import Text

from veilog.cli.shared.budget import at_a_terminal
from veilog.cli.shared.common import Output
from veilog.cli.shared.terminal import CALL, SafeConsole
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.releasing.losses import in_words
from veilog.releasing.owner.notes import tells_loss
from veilog.releasing.plan import Plan
from veilog.releasing.result import Release

__all__ = ["confirm_losses", "tell_losses"]


def confirm_losses(out: Output, planned: Plan, log: EventLog | StoredLog | Variants) -> None:
    """Show a person at a terminal what their release would leave out, and go on only if they say so. A script goes on:
    no release stops by itself because of raw data."""
    if CALL.get().quiet or not at_a_terminal():
        return
    found = planned.losses(log)
    if not found:
        return
    out.show(Text("Confidential, from the log itself:", style="bold magenta"))
    for loss in found:
        out.show(Text(f"  {in_words(loss)}", style="magenta"))
    answer = out.console.input(Text("Release it nevertheless? Nothing is spent yet. [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        raise ParameterError(
            "The release was not confirmed. Nothing was asked of the data, and nothing was spent.",
            parameter="activities" if any("activities" in loss.code for loss in found) else None,
        )


def tell_losses(released: Release) -> None:
    """Say in one line on stderr what was left out, if the command is quiet: of a job that runs every night nobody reads
    anything else, and a new activity, or a list that was mistyped, would be left out each night unseen."""
    if not CALL.get().quiet:
        return
    found = [in_words(loss) for loss in released.owner_only.losses if loss.code == "declared-activities-absent"]
    found += [note for note in released.owner_only.notes if tells_loss(note)]
    found += [f"Reading the log: {finding.dropped}." for finding in released.owner_only.findings if finding.dropped]
    if found:
        SafeConsole(stderr=True, highlight=False).print(Text(f"For you only: {' '.join(found)}"), soft_wrap=True)
