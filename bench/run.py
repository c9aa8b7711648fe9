"""All benchmarks, one after the other, each as a Markdown table on stdout.

    python bench/run.py [--logs FOLDER] [--small]

``--small`` shrinks the large ones to a tenth, for a first look. Benchmarks that need real logs are left out without
``--logs`` or VEILOG_LOGS.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

BENCHMARKS: tuple[tuple[str, bool, tuple[str, ...], tuple[str, ...]], ...] = (
    # file, needs real logs, arguments, arguments when small
    ("xes_reading.py", False, (), ("--events", "100000")),
    ("variants.py", False, (), ("--events", "1000000")),
    ("similarity.py", False, (), ("--variants", "1000", "--large", "3000")),
    ("disclosure.py", False, (), ("--large", "400", "--wide", "100", "--runs", "1")),
    ("evolve.py", False, (), ("--small", "--runs", "3")),
    ("frontier.py", True, (), ("--runs", "2")),
    ("groups.py", True, (), ()),
    ("travas.py", True, (), ("--runs", "3")),
    ("amun.py", True, (), ("--runs", "2")),
    ("pripel.py", True, (), ("--runs", "2")),
    ("libra.py", True, ("--speed",), ("--speed", "2")),
    ("suggest.py", True, ("--speed",), ("--speed", "--runs", "5")),
    ("models.py", False, (), ("--cases", "60000")),
    ("prefix_trees.py", True, (), ("--runs", "2", "--largest", "10000")),
    ("travag_step.py", False, (), ("--repeats", "5")),
    ("travag.py", True, (), ("--runs", "1", "--only", "table")),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"))
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    environment = dict(os.environ)
    if arguments.logs:
        environment["VEILOG_LOGS"] = arguments.logs
    failed = []
    for name, needs_logs, full, small in BENCHMARKS:
        if needs_logs and not arguments.logs:
            print(f"\n# {name}: left out, it needs --logs", flush=True)
            continue
        print(f"\n# {name}\n", flush=True)
        command = [sys.executable, str(HERE / name), *(small if arguments.small else full)]
        if subprocess.run(command, env=environment, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
