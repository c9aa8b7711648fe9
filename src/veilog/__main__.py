"""``python -m veilog``, and the command ``veilog``: it can be stopped while what it needs is still loaded."""

from __future__ import annotations

import os
import sys


def run() -> int:
    """Run the command; returns its exit status, also where it is stopped before it has begun."""
    try:
        from veilog.cli import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("Error: interrupted; nothing half written was left.\n")
        return 130


def _leave_current_folder() -> None:
    """Take off the path what ``python -m`` puts there, the current folder; the command ``veilog`` has none there.

    A log may come in a folder with others' modules. Where veilog itself comes from that folder, it stays.
    """
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):  # noqa: PTH120 - pathlib may lie there
        del sys.path[0]


if __name__ == "__main__":
    _leave_current_folder()
    sys.exit(run())
