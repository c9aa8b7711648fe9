"""The command, run within a test."""

import pytest

from veilog.cli import main

TRAVAS = ("--method", "travas", "--epsilon", "1", "--delta", "0.01", "--no-compare")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Its status, and what it wrote on both streams."""
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err
