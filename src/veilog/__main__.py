"""``python -m veilog``, and the command ``veilog``: it can be stopped while what it needs is still loaded."""

from __future__ import annotations

import sys

__all__ = ["run"]


def run() -> int:
    """Run the command; returns its exit status, also where it is stopped before it has begun."""
    try:
        from veilog.cli import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("Error: interrupted; nothing half written was left.\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
