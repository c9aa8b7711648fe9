"""``python -m veilog``."""

import sys

from veilog.cli import main

if __name__ == "__main__":
    sys.exit(main())
