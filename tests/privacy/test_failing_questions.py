"""A value that a query cannot take gives a fixed error, and all reserved is spent."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import veilog
from veilog.errors import InputError, QuestionError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import events
from veilog.privacy.cases import Cases
from veilog.privacy.curator import Curator

WARDS = pa.array([b"north", b"K\xf6ln"])
BROKEN = pa.Array.from_buffers(pa.string(), 2, WARDS.buffers())
"""Array of texts by its type, whose second text is no UTF-8; Arrow reads no value."""


def with_wards(wards: pa.Array) -> pa.Table:
    log = hospital(60, seed=1).to_arrow().select(["case:concept:name", "concept:name", "time:timestamp"])
    return log.append_column("ward", wards.take(pa.array([1] + [0] * (log.num_rows - 1))))


@pytest.mark.parametrize("wards", [BROKEN, pa.DictionaryArray.from_arrays(pa.array([0, 1]), BROKEN)])
def test_a_table_in_memory_with_text_that_is_no_utf_8_is_refused(wards: pa.Array) -> None:
    with pytest.raises(InputError) as caught:
        veilog.read(with_wards(wards))
    assert "ward" in caught.value.problem and "0xf6" not in str(caught.value)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> EventLog:
    """Return a log with such a value, as if a reader had let it pass."""
    monkeypatch.setattr(events, "_check_text", lambda table, source: None)
    return veilog.read(with_wards(BROKEN))


def test_such_a_value_in_a_question_spends_all_that_was_reserved_and_is_not_told(log: EventLog, tmp_path: Path) -> None:
    kept = Ledger.open(tmp_path / "log.ledger", create=True)
    with pytest.raises(QuestionError) as caught:
        veilog.release(
            log, "evolve", epsilon=2, activities="log", max_length=9, attributes=["ward"], ledger=kept, delta="1e-6"
        )
    assert "f6" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    (account,) = kept.show()
    assert account.spent == (2, Fraction("1e-6"))
    assert [entry.state for entry in account.entries] == ["charged"]


def test_a_function_that_fails_spends_all_that_was_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(block: Cases) -> Any:
        raise ValueError(block.times[0])

    asked = Curator.sums
    monkeypatch.setattr(Curator, "sums", lambda self, features, *rest, **more: asked(self, fails, *rest, **more))
    kept = Ledger.open(tmp_path / "log.ledger", create=True)
    with pytest.raises(QuestionError):
        veilog.release(hospital(60, seed=1), "evolve", epsilon=2, activities="log", max_length=9, ledger=kept)
    assert [account.spent for account in kept.show()] == [(2, 0)]
