"""Subsets of times with a zone, without one, or mixed: when their sums add up."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

import veilog
from veilog.errors import BudgetError
from veilog.ledger.ledger import Ledger
from veilog.logs.storage.loader import store
from veilog.privacy.partition import Partition

ZONED, LOCAL = "2024-04-01T00:30:00+02:00", "2024-04-01T00:30:00"
"""The same moment of a case: March in UTC, and April as a local time."""
MARCH, APRIL, MAY = (f"month=2024-0{n}" for n in (3, 4, 5))
WAYS = ["csv", "xes"]


def log_of(folder: Path, kind: str, *times: str) -> veilog.EventLog:
    """Return a log of cases of one event, each at one of these times."""
    place = folder / f"log.{kind}"
    if kind == "csv":
        rows = [f"c{i},a,w,{time}" for i, time in enumerate(times)]
        place.write_text("\n".join(["case:concept:name,concept:name,ward,time:timestamp", *rows]) + "\n")
    else:
        cases = (
            f'<trace><string key="concept:name" value="c{i}"/><event><string key="concept:name" value="a"/>'
            f'<string key="ward" value="w"/><date key="time:timestamp" value="{time}"/></event></trace>'
            for i, time in enumerate(times)
        )
        place.write_text(f"<log>{''.join(cases)}</log>")
    return veilog.read(place)


def spent(path: Path, *releases: tuple[veilog.EventLog, str], budget: int | None = None) -> Fraction:
    """Return what these subsets cost together, each at 1, on one account."""
    path.unlink(missing_ok=True)
    ledger = Ledger.open(path, create=True)
    if budget is not None:
        ledger.set_budget(releases[0][0], budget)
    for log, subset in releases:
        ledger.reserve(log, "laplace", epsilon=Fraction(1), subset=Partition.of(subset))
    (account,) = ledger.show()
    assert account.spent is not None
    return account.spent[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


@pytest.mark.parametrize("kind", WAYS)
def test_months_of_local_times_and_of_times_with_a_zone_add_up(tmp_path: Path, path: Path, kind: str) -> None:
    """A case in April of a local file and in March of a zoned one counts twice."""
    local, zoned = log_of(tmp_path, kind, LOCAL, LOCAL), log_of(tmp_path, kind, ZONED, ZONED)
    in_utc = log_of(tmp_path, kind, "2024-03-31T22:30:00Z", ZONED)
    assert Partition.of(APRIL).of_log(local).variants.cases == Partition.of(MARCH).of_log(zoned).variants.cases == 2
    assert spent(path, (local, MARCH), (local, APRIL)) == 1
    assert spent(path, (zoned, MARCH), (in_utc, APRIL)) == 1, "with a zone it is the same moment"
    assert spent(path, (local, APRIL), (zoned, MARCH)) == 2
    with refused(BudgetError, "budget-of-subsets-read-apart-exceeded"):
        spent(path, (local, APRIL), (zoned, MARCH), budget=1)


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize(("most", "odd"), [(ZONED, LOCAL), (LOCAL, ZONED)])
def test_one_time_that_is_unlike_the_others_makes_no_sum_smaller(
    tmp_path: Path, path: Path, kind: str, most: str, odd: str
) -> None:
    """One unlike time makes no sum smaller: subsets of mixed logs are never disjoint."""
    clear, mixed = log_of(tmp_path, kind, most, most), log_of(tmp_path, kind, most, odd)
    for first, second in ((clear, mixed), (mixed, clear), (mixed, mixed)):
        assert spent(path, (first, MARCH), (second, APRIL)) == 2
    assert spent(path, (clear, MARCH), (mixed, APRIL), (clear, MAY)) == 2
    days = [f"began=2024-03-0{n}..2024-03-0{n + 1}" for n in (1, 2)]
    assert spent(path, *((mixed, day) for day in days)) == 2
    assert spent(path, *((clear, day) for day in days)) == 1
    with refused(BudgetError, "budget-of-subsets-read-apart-exceeded", asked="1", budget="1", left="0"):
        spent(path, (mixed, MARCH), (mixed, APRIL), budget=1)


def test_subsets_by_an_attribute_do_not_look_at_times(tmp_path: Path, path: Path) -> None:
    local, mixed = log_of(tmp_path, "csv", LOCAL, LOCAL), log_of(tmp_path, "csv", LOCAL, ZONED)
    zoned = log_of(tmp_path, "csv", ZONED, ZONED)
    assert spent(path, (local, "ward=w"), (zoned, "ward=v"), (mixed, "ward=u")) == 1


def test_entries_of_before_it_was_kept_count_as_read_in_another_way(tmp_path: Path, path: Path) -> None:
    """Older entries count as read in another way, and make no sum smaller."""
    log = log_of(tmp_path, "csv", ZONED, ZONED)
    old = replace(log, read_as=log.read_as.replace(', "zones": "told"', ""))
    assert old.read_as != log.read_as
    assert spent(path, (old, MARCH), (old, APRIL)) == 1
    assert spent(path, (old, MARCH), (log, APRIL)) == 2


def test_logs_on_disk_know_whether_their_times_have_a_zone(tmp_path: Path) -> None:
    found = []
    for zone in (None, "UTC"):
        times = pa.array([0, 1], pa.timestamp("us", zone))
        rows = {"case:concept:name": ["1", "2"], "concept:name": ["a", "b"], "time:timestamp": times}
        pq.write_table(pa.table(rows), tmp_path / "log.parquet")
        stored = store(tmp_path / "log.parquet")
        assert stored is not None and stored.read_as == veilog.read(tmp_path / "log.parquet").read_as
        found.append(stored.read_as)
        stored.close()
    assert '"zones": "missing"' in found[0] and '"zones": "told"' in found[1]
