"""Shareable outputs are equal for neighbouring logs with equal noisy answers.

This holds also where one of them has a case that takes far longer to release.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from openly import planned

from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.privacy.domain import Domain
from veilog.testing.methods import recorded_and_replayed
from veilog.web.work.release_job import _write_files

LOG = hospital(150, seed=3).variants
LONGEST = 400_000
DOMAIN = Domain(activities=LOG.labels, max_length=15)
GIVEN_AWAY = ("certificate.json", "recipient-report.html", "release.xes", "release.csv", "release.parquet")


def _silent(text: str, fraction: float | None) -> None:
    """Ignore progress."""


def slow() -> Variants:
    """Return the log with one very slow case more, which has a label of its own."""
    walk = [LOG.labels[i % len(LOG.labels)] for i in range(LONGEST)] + ["Label of one case"]
    return Variants.from_dict({**LOG.to_dict(), tuple(walk): 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [("evolve", {}), ("travas", {"delta": 1e-2}), ("laplace", {}), ("sapa", {"k": 2}), ("dpim", {})],
)
def test_neighbouring_logs_give_equal_bytes_whoever_takes_longer(
    method: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    released = recorded_and_replayed(planned(method, domain=DOMAIN, epsilon=2, **settings), LOG, slow())[:2]
    assert released[0].owner_only != released[1].owner_only, "the owner is told of what took long and was left out"
    for number, one in enumerate(released):
        (tmp_path / str(number)).mkdir()
        assert _write_files(one, tmp_path / str(number), _silent, _silent) == ([], [])
    for name in GIVEN_AWAY:
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes(), name
    certificate = (tmp_path / "0" / "certificate.json").read_text()
    assert not {"owner_only", "seconds", "notes"} & set(json.loads(certificate))
    assert "seconds" not in certificate
