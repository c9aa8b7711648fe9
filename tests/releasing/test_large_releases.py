"""A release written piece by piece gives the file of its log written at once."""

from pathlib import Path

import numpy as np
import openly
import pytest

import veilog
from veilog import Domain, Variants
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import parquet
from veilog.methods._events import assemble as event_log

LOG = Variants.from_dict({("a", "b"): 500, ("a", "c", "c"): 300, ("a", "b", "c"): 80, ("d",): 2, (): 40})
SUFFIXES = [".xes", ".xes.gz", ".csv", ".tsv.gz", ".parquet"]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces and row groups small, neither being a multiple of the other."""
    monkeypatch.setattr(event_log, "_PIECE", 37)
    monkeypatch.setattr(parquet, "_GROUP", 101)


def released(**changes: object) -> veilog.Release:
    return openly.release(LOG, "travas", **{"epsilon": 2, "delta": "1e-2", "seed": 1, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_file_is_that_of_the_log_written_at_once(tmp_path: Path, suffix: str) -> None:
    whole = released().log
    assert (np.diff(whole.offsets) == 0).any()
    files.write(whole, tmp_path / f"whole{suffix}", lossy=True)
    release = released()
    release.save(tmp_path / f"pieces{suffix}")
    assert (tmp_path / f"pieces{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    assert "log" not in vars(release)
    assert release.log.events.equals(whole.events)
    assert release.log.cases.equals(whole.cases)


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_so_it_is_with_times_and_attributes(tmp_path: Path, suffix: str) -> None:
    domain = Domain(attributes={"leucocytes": (0.0, 30.0), "urgency": ("1", "2", "3"), "age group": ("0-17", "18-64")})
    release = openly.release(
        hospital(200, seed=2),
        "evolve",
        epsilon=50,
        seed=3,
        times="0.3",
        attributes=["leucocytes", "urgency", "age group"],
        domain=domain,
    )
    release.save(tmp_path / f"pieces{suffix}")
    files.write(release.log, tmp_path / f"whole{suffix}", lossy=True)
    assert release.variants.cases > 100
    assert (tmp_path / f"pieces{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
