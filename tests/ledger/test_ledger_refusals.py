"""Unusable ledgers: damaged, forged, newer, locked, read-only, or other files."""

import contextlib
import json
import random
import sqlite3
from fractions import Fraction
from pathlib import Path

import openly
import pytest
from ledger_tools import SMALL, spent
from refusals import refused

from veilog.errors import InputError, OutputError, VeilogError
from veilog.ledger import store as ledger_file
from veilog.ledger.ledger import Ledger
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.partition import Partition

"""Tables that came with the last versions of the file."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


@pytest.fixture
def used(path: Path) -> Path:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 7, "1e-3")
    for epsilon in ("0.25", "1"):
        openly.release(SMALL, "laplace", epsilon=epsilon, ledger=ledger)
    return path


@pytest.mark.slow
def test_a_damaged_ledger_is_refused_and_never_read_as_less(used: Path, tmp_path: Path) -> None:
    whole = used.read_bytes()
    expected = Ledger.open(used).show()
    rng = random.Random(11)
    refused = 0
    for i in range(300):
        if i % 3 == 0:
            broken = bytearray(whole[: rng.randrange(len(whole))])
        else:
            broken = bytearray(whole)
            # half of the damage where the content is, for most of a page is empty
            places = [n for n, byte in enumerate(whole) if byte] if i % 3 == 1 else range(len(whole))
            broken[rng.choice(places)] ^= 1 << rng.randrange(8)
        copy = tmp_path / f"{i}.ledger"
        copy.write_bytes(broken)
        try:
            assert Ledger.open(copy, patience=0).show() == expected
        except VeilogError as error:
            refused += 1
            assert str(copy) in str(error)
    assert refused > 150


@pytest.mark.slow
def test_forged_content_is_refused(used: Path) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("UPDATE releases SET epsilon = '1/8' WHERE release = 1")
    with refused(InputError, "ledger-damaged") as caught:
        Ledger.open(used)
    assert caught.value.path == str(used)


@pytest.mark.slow
def test_removed_rows_are_noticed(used: Path) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("DELETE FROM releases WHERE release = 2")
    with pytest.raises(InputError, match="damaged"):
        Ledger.open(used)


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 5, 9])
def test_a_ledger_of_another_version_is_refused(used: Path, version: int) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = used.read_bytes()
    with pytest.raises(InputError) as refused:
        openly.release(SMALL, "laplace", epsilon=1, ledger=used)
    assert str(version) in refused.value.problem and refused.value.path == str(used)
    assert used.read_bytes() == before


@pytest.mark.slow
def test_checkpoints_are_under_the_seal(used: Path) -> None:
    Ledger.open(used).reserve(SMALL, "training", epsilon=Fraction(1), mark="first", subset=Partition.of("year=2024"))
    with ledger_file.transaction(used, write=False, patience=1, waiting=None) as book:
        assert book.runs == {3: "first"}
    with contextlib.closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("UPDATE runs SET mark = 'another'")
    with pytest.raises(InputError, match="damaged"):
        Ledger.open(used)


def test_another_database_or_file_is_left_as_it_is(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")
    (tmp_path / "text").write_text("case,activity\n")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("db", "text", "empty"):
        before = (tmp_path / name).read_bytes()
        with refused(InputError, "ledger-is-other-database", "ledger-not-recognised"):
            openly.release(SMALL, "laplace", epsilon=1, ledger=tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.slow
def test_folders_and_links_to_nothing_are_refused_and_links_are_followed(used: Path, tmp_path: Path) -> None:
    with refused(InputError, "ledger-is-directory"):
        Ledger.open(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with refused(InputError, "ledger-link-broken"):
        Ledger.open(tmp_path / "nowhere", create=True)
    with refused(InputError, "ledger-file-missing"):
        Ledger.open(tmp_path / "gone")
    with refused(OutputError, "folder-not-there"):
        Ledger.open(tmp_path / "gone" / "x.ledger", create=True)
    with refused(InputError, "ledger-not-usable"):
        Ledger.open("a\0b")
    (tmp_path / "link").symlink_to(used)
    openly.release(SMALL, "laplace", epsilon=1, ledger=tmp_path / "link")
    assert spent(used) == Fraction(9, 4)


@pytest.mark.slow
def test_a_locked_ledger_is_waited_for_and_then_refused(used: Path) -> None:
    told = []
    with contextlib.closing(sqlite3.connect(used, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        ledger = Ledger(used, patience=0.5, waiting=lambda text, fraction: told.append(text))
        with refused(OutputError, "ledger-locked"):
            ledger.reserve(SMALL, "x", epsilon=Fraction(1))
        with refused(OutputError, "ledger-locked"):
            ledger.show()
    assert told[0] == str(Message("ledger-waited-for", ledger="log.ledger"))
    ledger.reserve(SMALL, "x", epsilon=Fraction(1))


@pytest.mark.slow
def test_without_a_writable_ledger_there_is_no_release(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(place: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, isolation_level=None)

    monkeypatch.setattr(ledger_file, "_connect", read_only)
    assert len(Ledger.open(used).show()) == 1
    with pytest.raises(OutputError, match="read-only"):
        openly.release(SMALL, "laplace", epsilon=1, ledger=used)


def test_names_that_are_no_text_can_be_entered(path: Path) -> None:
    ledger = Ledger.open(path, create=True, name="log\udcff.xes")
    held = ledger.reserve(SMALL, "x", epsilon=Fraction(1), unit="\udcff", parameters={"rules": "\udcff"})
    assert held.entered.account().name == "log?.xes"
    json.dumps(held.entered.account().to_json()).encode()


def test_fractions_of_any_length_are_kept_and_never_shrink(path: Path) -> None:
    long = Fraction(1, 3) + Fraction(1, 10**4000)
    held = Ledger.open(path, create=True).reserve(SMALL, "x", epsilon=long)
    (kept, _) = held.entered.account().spent or (Fraction(0), None)
    assert long <= kept < long + Fraction(1, 10**100)


def test_a_name_that_two_accounts_have_names_none(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    for log in (SMALL, Variants.from_dict({("x",): 3})):
        assert ledger.enter(log).name == "data"
    with refused(VeilogError, "account-name-ambiguous", name="data", numbers="1, 2"):
        openly.release(SMALL, "laplace", epsilon=1, ledger=Ledger.open(path, account="data"))


def test_a_ledger_is_no_folder_and_lies_in_one(tmp_path: Path) -> None:
    with refused(InputError, "ledger-is-directory"):
        Ledger.open(tmp_path, create=True)
    with refused(OutputError, "folder-not-there"):
        Ledger.open(tmp_path / "none" / "log.ledger", create=True).enter(SMALL)


def test_a_ledger_is_exported_in_the_formats_that_there_are(used: Path, tmp_path: Path) -> None:
    with refused(OutputError, "ledger-export-format-unknown"):
        Ledger.open(used).export(tmp_path / "ledger.pdf")
    assert not (tmp_path / "ledger.pdf").exists()
