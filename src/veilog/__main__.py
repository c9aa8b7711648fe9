"""``python -m veilog`` and the command ``veilog``.

Ctrl-C stops the command also while its modules still load. Loading and ending do no work that a command does not need:
no search for garbage in what has just been made, and no taking apart of modules that the system frees at once.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys


def run() -> int:
    """Run the command and return its exit status, also if stopped while it loads."""
    ended: list[int] = []
    atexit.register(_end, ended)  # before all others, and so called after them
    gc.disable()  # until the command is loaded, which enables it
    try:
        from veilog.cli import main

        ended.append(main())
    except KeyboardInterrupt:
        sys.stderr.write("Error: interrupted; nothing half written was left.\n")
        ended.append(130)
    return ended[0]


def _end(ended: list[int]) -> None:
    """End the process with its status; an unwritten output is left to Python's report."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
        if ended:
            os._exit(ended[0])


def _leave_current_folder() -> None:
    """Remove the current folder from the path, where ``python -m`` puts it.

    A log may come in a folder with others' modules. If veilog itself comes from that folder, it stays. The command
    ``veilog`` has no such entry.
    """
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120 - pathlib may lie there
        del sys.path[0]


if __name__ == "__main__":
    _leave_current_folder()
    sys.exit(run())
