"""The command that writes a shell's script to complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from veilog.cli.shared.terminal import put_out


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell that is to complete.")], /
) -> None:
    """Write a script to stdout that lets a shell complete
    veilog's commands and options."""
    from veilog.cli import application  # which knows this command

    put_out(application(whole=True).generate_completion(shell=shell))
