"""Statements about other releases: no tick that the ledger contradicts."""

from fractions import Fraction
from pathlib import Path

from ledger_tools import SMALL, guarantee

from veilog.ledger.ledger import Ledger
from veilog.releasing.account_notes import LedgerStatus
from veilog.report.words import other_releases_sentence


def test_a_release_beside_others_that_are_not_counted_is_not_the_only_one(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    ledger.reserve(SMALL, "laplace", epsilon=Fraction(1))
    before = other_releases_sentence(LedgerStatus(ledger.account(SMALL)))[0]
    ledger.note_uncounted(SMALL, "laplace", guarantee(Fraction(3)))
    assert before != "against" and other_releases_sentence(LedgerStatus(ledger.account(SMALL)))[0] == "against"
    ledger.count_uncounted(SMALL)
    assert ledger.account(SMALL) is not None
    assert other_releases_sentence(LedgerStatus(ledger.account(SMALL)))[0] != before
