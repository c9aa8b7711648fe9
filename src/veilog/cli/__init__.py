"""The command ``veilog``: every job of the library for people (tables) and for machines (--json).

Exit status: 0 success; 1 an error of the user's input or data, with a message on stderr and nothing written; 2 wrong
usage; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from veilog import display
from veilog._version import __version__
from veilog.cli import audit, experiment, ledger, logs, measure, model, release, report, serve, suggest
from veilog.cli.common import Reading
from veilog.cli.terminal import SafeConsole
from veilog.errors import VeilogError

__all__ = ["Reading", "app", "main"]

app = App(
    name="veilog",
    help="Share event logs of a process without giving away the people in them.",
    version=__version__,
    version_flags=["--version"],
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

for _command in (
    logs.info,
    logs.validate,
    logs.convert,
    release.methods,
    suggest.suggest,
    release.release,
    report.report,
    model.train,
    model.sample,
    model.inspect,
    measure.risk,
    measure.compare,
    audit.audit,
    experiment.experiment,
    release.demo,
    serve.serve,
):
    app.command(_command)
app.command(ledger.app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    errors = SafeConsole(stderr=True, highlight=False)
    try:
        app(list(sys.argv[1:] if arguments is None else arguments), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        errors.print(f"{error}", markup=False, soft_wrap=True)
        errors.print("See veilog --help.", markup=False)
        return 2
    except VeilogError as error:
        display.error_line(errors, str(error))
        return 1
    except KeyboardInterrupt:
        display.error_line(errors, "interrupted; nothing half written was left.")
        return 130
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): not our error. Keep Python from failing on its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0
