"""Uncounted releases are listed, in no sum, and counted if their owner decides so."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_tools import OTHER, SMALL, guarantee
from refusals import refused

from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger
from veilog.privacy.partition import Partition

HALF = Fraction(1, 2)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "log.ledger", create=True)


def test_what_is_not_counted_is_in_no_sum_until_it_is_taken_in(ledger: Ledger) -> None:
    noted = ledger.note_uncounted(SMALL, "laplace", guarantee(HALF), subset=Partition("month", "2024-01"))
    assert (noted.spent, noted.releases, len(noted.uncounted)) == ((0, 0), 0, 1)
    ledger.set_budget(SMALL, 1)
    ledger.reserve(SMALL, "laplace", epsilon=Fraction(1, 4))
    account = ledger.account(SMALL)
    assert account is not None and account.left == (Fraction(3, 4), 0)
    assert account.to_json()["uncounted"] == 1
    counted = ledger.count_uncounted(SMALL)
    assert (counted.left, counted.uncounted) == ((Fraction(1, 4), 0), ())
    assert [(entry.epsilon, entry.state, entry.subset) for entry in counted.entries] == [
        (Fraction(1, 4), "reserved", None),
        (HALF, "charged", "month=2024-01"),
    ]
    assert counted.entries[1].time == noted.uncounted[0].time
    assert counted.entries[1].guarantee == noted.uncounted[0].guarantee
    assert ledger.count_uncounted(SMALL) == counted, "counted once"


def test_a_release_that_nothing_bounds_is_noted_and_counted_so(ledger: Ledger) -> None:
    ledger.note_uncounted(SMALL, "pretsa", guarantee(HALF, status="none"), as_published=True)
    counted = ledger.count_uncounted(SMALL)
    assert counted.spent is None and counted.entries[0].as_published


def test_what_does_not_add_up_is_not_taken_in_under_a_budget(ledger: Ledger) -> None:
    ledger.set_budget(SMALL, 3)
    ledger.reserve(SMALL, "laplace", epsilon=HALF)
    ledger.note_uncounted(SMALL, "laplace", guarantee(HALF), unit="person")
    before = ledger.show()
    with refused(ParameterError, "account-units-differ-within"):
        ledger.count_uncounted(SMALL)
    assert ledger.show() == before


def test_a_plan_is_over_when_others_are_taken_in(ledger: Ledger) -> None:
    """A plan ends when uncounted releases, none of its own, join its account."""
    ledger.set_plan(SMALL, 3, HALF, "1e-6")
    ledger.note_uncounted(SMALL, "laplace", guarantee(HALF))
    assert ledger.count_uncounted(SMALL).counting is None


def test_they_go_with_their_data_to_another_account(ledger: Ledger) -> None:
    ledger.enter(SMALL)
    ledger.note_uncounted(OTHER, "laplace", guarantee(HALF))
    assert len(ledger.enter(OTHER, account=1).uncounted) == 1


def test_accounts_are_found_by_one_read(ledger: Ledger) -> None:
    from veilog.ledger.store import fingerprint

    ledger.enter(SMALL)
    assert [a.number for a in ledger.accounts_of([fingerprint(SMALL), fingerprint(OTHER)]).values()] == [1]


def test_an_export_lists_them_apart(ledger: Ledger, tmp_path: Path) -> None:
    ledger.note_uncounted(SMALL, "laplace", guarantee(HALF))
    ledger.export(tmp_path / "a.json")
    (account,) = json.loads((tmp_path / "a.json").read_text())["accounts"]
    assert account["releases"] == [] and [row["epsilon"] for row in account["uncounted_releases"]] == [0.5]
