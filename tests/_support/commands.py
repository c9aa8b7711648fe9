"""The command, run within a test or at a terminal."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from veilog.cli import main

TRAVAS = ("--method", "travas", "--epsilon", "1", "--delta", "0.01", "--no-compare")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Return the exit status, the output and the errors of the command."""
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Return the command's error as JSON, after a check of its status and its line."""
    capsys.readouterr()
    status, out, err = run(capsys, *arguments, "--json", "-")
    error: dict[str, Any] = json.loads(out)["error"]
    assert status == error["status"] and err.startswith("Error: ")
    return error


def code_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Return the exit status and the code of a refusal."""
    error = error_of(capsys, *arguments)
    return error["status"], error["code"]


def at_a_terminal(answer: str, *arguments: str, cwd: Path) -> tuple[int, bytes]:
    """Return status and output of a command whose question at a terminal is answered."""
    import pty  # some systems lack it

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "veilog", *arguments]
    running = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=cwd)
    os.close(follower)
    shown, answered, until = b"", False, time.monotonic() + 240
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                shown += os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
        elif running.poll() is not None:
            break
        if not answered and b"[y/N]" in shown:
            os.write(leader, f"{answer}\n".encode())
            answered = True
    os.close(leader)
    assert answered, "it asked"
    return running.wait(120), shown
