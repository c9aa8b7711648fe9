"""``python -m veilog`` and the command ``veilog``.

Ctrl-C stops the command also while its modules still load.
"""

from __future__ import annotations

import os
import sys


def run() -> int:
    """Run the command and return its exit status, also if stopped while it loads."""
    try:
        from veilog.cli import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("Error: interrupted; nothing half written was left.\n")
        return 130


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
