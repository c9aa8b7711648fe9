"""The command ``veilog``: every job of the library for people (tables) and for machines (--json).

Exit status: 0 success; 1 an error of the user's input or data, with a message on stderr and nothing written; 2 wrong
usage; 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from veilog._version import __version__
from veilog.cli.pipes import cleared, without_folder
from veilog.cli.terminal import SafeConsole, error_line
from veilog.errors import VeilogError

__all__ = ["application", "main"]

_COMMANDS = {
    "info": "logs:info",
    "validate": "logs:validate",
    "convert": "logs:convert",
    "methods": "release:methods",
    "suggest": "suggest:suggest",
    "release": "release:release",
    "report": "report:report",
    "dossier": "dossier:dossier",
    "train": "model:train",
    "sample": "model:sample",
    "inspect": "model:inspect",
    "risk": "measure:risk",
    "compare": "measure:compare",
    "audit": "audit:audit",
    "experiment": "experiment:experiment",
    "demo": "release:demo",
    "serve": "serve:serve",
    "ledger": "ledger:app",
}
"""Where each command lives: it is imported when it is called."""


def application(*, whole: bool = False) -> App:
    """Return the command; ``whole`` imports all of its parts at once, so that help knows what each does."""
    app = App(
        name="veilog",
        help="Share event logs of a process without giving away the people in them.",
        version=__version__,
        version_flags=["--version"],
        help_format="plaintext",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name, place in _COMMANDS.items():
        module, _, part = place.partition(":")
        if whole:
            app.command(getattr(importlib.import_module(f"veilog.cli.{module}"), part))
        else:
            app.command(f"veilog.cli.{place}", name=name)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    errors = SafeConsole(stderr=True, highlight=False)
    given = list(sys.argv[1:] if arguments is None else arguments)
    app = application(whole=not given or given[0] in ("-h", "--help"))
    with cleared():
        return _run(app, given, errors)


def _run(app: App, given: Sequence[str], errors: SafeConsole) -> int:
    try:
        app(given, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        errors.print(f"{error}", markup=False, soft_wrap=True)
        errors.print("See veilog --help.", markup=False)
        return 2
    except VeilogError as error:
        error_line(errors, without_folder(str(error)))
        return 1
    except KeyboardInterrupt:
        error_line(errors, "interrupted; nothing half written was left.")
        return 130
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): not our error. Keep Python from failing on its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0
