"""The ledger: charges are exact, durable before anything else, and never above the budget."""

import contextlib
import hashlib
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veilog
from veilog.errors import BudgetError, InputError, OutputError, ParameterError, VeilogError
from veilog.logs import simulate
from veilog.privacy import ledger_file
from veilog.privacy.accounting import round_up
from veilog.privacy.curator import Curator
from veilog.privacy.guarantee import Charge, Guarantee
from veilog.privacy.ledger import Ledger, Reservation, fingerprint

# So many cases that no release of them is ever empty: what is empty is not written.
SMALL = veilog.Variants.from_dict({("a", "b"): 30_000, ("a", "c", "b"): 12_000})
OTHER = veilog.Variants.from_dict({("a", "b"): 30_001, ("a", "c", "b"): 12_000})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


def guarantee(epsilon: Fraction, delta: Fraction = Fraction(0), status: str = "proven") -> Guarantee:
    proven = status == "proven"
    return Guarantee(
        status="proven" if proven else "none",
        epsilon=round_up(epsilon) if proven else None,
        delta=round_up(delta) if proven else None,
        nominal_epsilon=None,
        nominal_delta=None,
        unit="case",
        neighbours="logs that differ by a case",
        numerics="exact",
        assumptions=(),
        reasons=() if proven else ("looked at",),
        charges=(Charge("count", "cases", "discrete Laplace", "1", epsilon, delta),),
    )


def spent(path: Path) -> Fraction | None:
    (account,) = Ledger.open(path).show()
    return None if account.spent is None else account.spent[0]


def test_a_release_is_reserved_then_charged_then_written(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    held = ledger.reserve(SMALL, "laplace", epsilon=Fraction(1), parameters={"depth": 3})
    (entry,) = held.account().entries
    assert (entry.state, entry.epsilon, entry.parameters) == ("reserved", 1, {"depth": 3})
    held.settle(guarantee(Fraction(1, 3)))
    (entry,) = held.account().entries
    assert (entry.state, entry.epsilon) == ("charged", Fraction(1, 3))
    assert entry.guarantee is not None and entry.guarantee["status"] == "proven"
    (tmp_path / "out").write_bytes(b"released")
    held.written(tmp_path / "out")
    (entry,) = held.account().entries
    assert entry.state == "written"
    assert len(entry.outputs) == 1


def test_the_digest_in_the_ledger_is_that_of_the_file(path: Path, tmp_path: Path) -> None:
    released = veilog.release(SMALL, "laplace", epsilon=1, ledger=path)
    released.save(tmp_path / "out.csv")
    released.save(tmp_path / "out.xes.gz")
    (account,) = Ledger.open(path).show()
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("out.csv", "out.xes.gz")]
    assert list(account.entries[0].outputs) == digests


def test_a_ledger_that_vanished_is_told_after_the_file_is_written(path: Path, tmp_path: Path) -> None:
    released = veilog.release(SMALL, "laplace", epsilon=3, ledger=path)
    path.unlink()
    with pytest.raises(OutputError, match=r"out\.csv: The release is written, and was charged, but .* no such ledger"):
        released.save(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").exists()


def test_sums_are_exact_so_that_ten_tenths_fit_into_one(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 1)
    for _ in range(10):
        veilog.release(SMALL, "laplace", epsilon=0.1, ledger=ledger)
    assert spent(path) == 1
    with pytest.raises(BudgetError, match="of 1 in all 0 is left"):
        veilog.release(SMALL, "laplace", epsilon="1e-9", ledger=ledger)


def test_delta_has_a_budget_of_its_own(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 10, "1e-5")
    veilog.release(SMALL, "travas", epsilon=1, delta="1e-5", ledger=ledger)
    with pytest.raises(BudgetError, match="delta = 1e-07 was asked for, and of 1e-05 in all 0 is left"):
        veilog.release(SMALL, "travas", epsilon=1, delta="1e-7", ledger=ledger)
    assert spent(path) == 1


def test_too_dear_a_release_is_refused_before_any_question(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 1)

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("a question was asked")

    for question in ("count", "histogram", "sums", "partitions", "peek", "peek_log", "peek_pieces"):
        monkeypatch.setattr(Curator, question, asked)
    with pytest.raises(BudgetError):
        veilog.release(SMALL, "laplace", epsilon="1.001", ledger=ledger)
    assert spent(path) == 0


def test_the_reservation_stands_while_questions_are_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    histogram = Curator.histogram

    def looked(self: Curator, *a: object, **k: object) -> object:
        (account,) = Ledger.open(path).show()
        seen.append((account.entries[0].state, account.entries[0].epsilon))
        return histogram(self, *a, **k)  # type: ignore[call-overload]

    monkeypatch.setattr(Curator, "histogram", looked)
    veilog.release(SMALL, "laplace", epsilon=2, ledger=path)
    assert set(seen) == {("reserved", Fraction(2))}


def test_a_release_that_fails_is_charged_what_it_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = Curator.histogram

    def fails(self: Curator, *a: object, **k: object) -> object:
        histogram(self, *a, **k)  # type: ignore[call-overload]
        raise KeyboardInterrupt

    monkeypatch.setattr(Curator, "histogram", fails)
    with pytest.raises(KeyboardInterrupt):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=path)
    (entry,) = Ledger.open(path).show()[0].entries
    assert entry.state == "charged"
    assert entry.epsilon is not None and 0 < entry.epsilon < 1


def test_a_release_that_fails_before_it_asks_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Curator, *_: object, **__: object) -> object:
        raise ParameterError("not so")

    monkeypatch.setattr(Curator, "histogram", fails)
    with pytest.raises(ParameterError, match="not so"):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=path)
    assert spent(path) == 0
    assert Ledger.open(path).show()[0].entries[0].state == "withdrawn"


def test_a_method_that_breaks_its_word_is_withheld_and_stays_reserved(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    for broken in (
        guarantee(Fraction(11, 10)),
        guarantee(Fraction(1), Fraction(1, 10)),
        guarantee(Fraction(1), status="none"),
    ):
        held = ledger.reserve(SMALL, "x", epsilon=Fraction(1))
        with pytest.raises(BudgetError, match="withheld"):
            held.settle(broken)
        assert held.account().entries[-1].state == "reserved"
    assert spent(path) == 3


def test_what_nothing_bounds_is_recorded_without_a_budget_and_refused_with_one(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    veilog.release(SMALL, "sacofa", epsilon=1, as_published=True, ledger=ledger)
    veilog.release(SMALL, "laplace", epsilon=1, seed=1, ledger=ledger)
    (account,) = ledger.show()
    assert [entry.epsilon for entry in account.entries] == [None, None]
    assert account.spent is None
    assert ledger.set_budget(SMALL, 5).left == (0, 0)
    with pytest.raises(BudgetError, match="Nothing is left"):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=ledger)
    ledger.set_budget(OTHER, 5)
    for argument in ({"as_published": True}, {"seed": 1}):
        with pytest.raises(BudgetError, match="nothing bounds"):
            veilog.release(OTHER, "laplace", epsilon=1, ledger=ledger, **argument)  # type: ignore[arg-type]


def test_as_published_is_charged_what_is_derived_where_something_is(path: Path) -> None:
    released = veilog.release(SMALL, "laplace", epsilon=1, as_published=True, depth=4, ledger=path)
    assert released.guarantee.epsilon is not None and released.guarantee.epsilon > 1
    assert spent(path) == Fraction(str(released.guarantee.epsilon))


def test_changed_data_do_not_evade_a_budget(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 2)
    veilog.release(SMALL, "laplace", epsilon=1, ledger=ledger)
    with pytest.raises(BudgetError, match="not the same"):
        veilog.release(OTHER, "laplace", epsilon=1, ledger=ledger)
    joined = ledger.enter(OTHER, account=1)
    assert (joined.number, joined.left) == (1, (1, 0))
    veilog.release(OTHER, "laplace", epsilon=1, ledger=ledger)
    with pytest.raises(BudgetError):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=ledger)


def test_accounts_that_are_put_together_keep_all_that_was_spent(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    for data in (SMALL, OTHER):
        veilog.release(data, "laplace", epsilon=1, ledger=ledger)
    first, second = ledger.show()
    joined = ledger.set_budget(OTHER, 3, account=first.number)
    assert joined.spent == (2, 0)
    assert [account.number for account in ledger.show()] == [first.number]
    with pytest.raises(ParameterError, match=f"no account {second.number}"):
        ledger.enter(SMALL, account=second.number)


def test_putting_accounts_together_never_loses_a_budget(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.enter(SMALL)
    ledger.set_budget(OTHER, 2)
    assert ledger.enter(OTHER, account=1).budget == (2, 0)
    assert ledger.account(SMALL) == ledger.account(OTHER)


def test_a_budget_below_what_is_spent_leaves_nothing(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    veilog.release(SMALL, "laplace", epsilon=2, ledger=ledger)
    assert ledger.set_budget(SMALL, 1).left == (0, 0)
    assert ledger.set_budget(SMALL, 3).left == (1, 0)
    assert ledger.set_budget(SMALL, None).left is None


@pytest.mark.parametrize("epsilon", [math.nan, math.inf, -1, 0, "much", "nan", 10**9, True])
def test_budgets_that_are_none_are_refused(path: Path, epsilon: object) -> None:
    with pytest.raises(ParameterError):
        Ledger.open(path, create=True).set_budget(SMALL, epsilon)  # type: ignore[arg-type]
    assert not path.exists()


def test_costs_of_different_units_are_never_added_up(path: Path) -> None:
    log = veilog.read(_people())
    ledger = Ledger.open(path, create=True)
    veilog.release(log, "laplace", epsilon=1, unit="patient", max_cases=2, ledger=ledger)
    account = ledger.set_budget(log, 3)
    assert (account.unit, account.left) == ("patient", (2, 0))
    with pytest.raises(BudgetError, match="for the unit 'patient' and this release for 'case'"):
        veilog.release(log, "laplace", epsilon=1, ledger=ledger)
    veilog.release(log, "laplace", epsilon=2, unit="patient", max_cases=2, ledger=ledger)
    assert spent(path) == 3
    assert ledger.set_budget(log, 3, unit="case").spent is None


def _people() -> object:
    pa = pytest.importorskip("pyarrow")
    rows = [
        (f"c{i}", f"p{i % 7}", a, f"2024-01-{1 + i % 28:02}T0{j}:00:00") for i in range(40) for j, a in enumerate("ab")
    ]
    names = ("case:concept:name", "case:patient", "concept:name", "time:timestamp")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


@settings(max_examples=12)
@given(st.lists(st.tuples(st.fractions(Fraction(1, 50), 2, max_denominator=60), st.fractions(0, 1)), max_size=8))
def test_the_sum_is_never_above_the_budget_at_any_moment(steps: list[tuple[Fraction, Fraction]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(Path(folder) / "x.ledger", create=True)
        ledger.set_budget(SMALL, 2)
        expected = Fraction(0)
        for asked, share in steps:
            try:
                held = ledger.reserve(SMALL, "x", epsilon=asked)
            except BudgetError:
                assert expected + asked > 2
                continue
            assert held.account().spent == (expected + asked, 0)
            assert expected + asked <= 2
            held.settle(guarantee(asked * share))
            expected += asked * share
        assert ledger.show()[0].spent == (expected, 0)


# Recognition ------------------------------------------------------------------------------------------------------


def test_the_same_data_are_recognised_in_every_format(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    log = simulate.hospital(200, seed=5)
    expected = fingerprint(log)
    for name in ("log.xes", "log.xes.gz", "log.csv", "log.tsv.gz", "log.parquet"):
        veilog.write(log, tmp_path / name, lossy=True)
        assert fingerprint(veilog.read(tmp_path / name)) == expected, name
        assert fingerprint(veilog.read_variants(tmp_path / name)) == expected, name
    frame = log.to_pandas().sample(frac=1, random_state=1)
    assert fingerprint(veilog.read(frame)) == expected


@pytest.mark.parametrize("name", ["sepsis", "receipt"])
def test_a_public_log_is_recognised_as_a_table(logs: Path, tmp_path: Path, name: str) -> None:
    log = veilog.read(logs / f"{name}.xes.gz")
    veilog.write(log, tmp_path / "log.csv", lossy=True)
    assert fingerprint(veilog.read_variants(tmp_path / "log.csv")) == fingerprint(log)


def test_one_case_more_is_other_data() -> None:
    assert fingerprint(SMALL) != fingerprint(OTHER)
    assert fingerprint(veilog.Variants.from_dict({("a", "b"): 1})) != fingerprint(
        veilog.Variants.from_dict({("ab",): 1})
    )


def test_digests_differ_from_ledger_to_ledger(tmp_path: Path) -> None:
    digests = set()
    for name in ("a", "b"):
        Ledger.open(tmp_path / name, create=True).enter(SMALL)
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as connection:
            digests.add(connection.execute("SELECT digest FROM data").fetchone()[0])
    assert len(digests) == 2
    assert fingerprint(SMALL).hex() not in digests


def test_nothing_of_the_log_is_in_the_ledger(tmp_path: Path, path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    acts = [f"Zqx{i}deed" for i in range(5)]
    rows = [
        (f"Wvy{i}case", acts[(i + j) % 5], f"2024-03-{1 + i % 28:02}T0{j}:00:00", f"Kjh{(i + j) % 3}value")
        for i in range(60)
        for j in range(3)
    ]
    names = ("case:concept:name", "concept:name", "time:timestamp", "ward")
    log = veilog.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}))
    for method in ("evolve", "laplace", "df-laplace", "sapa", "sacofa"):
        veilog.release(log, method, epsilon=1, ledger=path).save(tmp_path / "o.csv")
    veilog.release(log, "travas", epsilon=1, delta=0.01, ledger=path)
    veilog.release(log, "evolve", epsilon=5, delta=0.01, times=0.3, attributes=["ward"], window="log", ledger=path)
    veilog.release(log, "utravas", epsilon=1, delta=0.01, as_published=True, ledger=path)
    content = path.read_bytes()
    assert b"evolve" in content
    for word in (b"Zqx", b"deed", b"Wvy", b"Kjh", b"2024-03", *(a.encode() for a in acts)):
        assert word not in content
    assert path.stat().st_mode & 0o077 == 0


# Many at once, and cut off ------------------------------------------------------------------------------------------

PROLOGUE = """
import os, sys, time, random, signal
import veilog
from veilog.errors import BudgetError
from veilog.privacy.ledger import Ledger
folder = sys.argv[1]
path = folder + "/log.ledger"
log = veilog.Variants.from_dict({("a", "b"): 3000, ("a", "c", "b"): 1200, ("a", "c", "c", "b"): 600})
"""

TOGETHER = (
    PROLOGUE
    + """
Ledger.open(path, create=True).set_budget(log, 5)
start, go = os.pipe()
children = []
for i in range(16):
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(start, 1)
        try:
            veilog.release(log, "laplace", epsilon=1, ledger=Ledger.open(path, patience=60)).save(f"{folder}/{i}.csv")
        except BudgetError:
            os._exit(3)
        os._exit(0)
    children.append(child)
os.close(go)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
)

KILLED = (
    PROLOGUE
    + """
kills = int(sys.argv[2])
Ledger.open(path, create=True).set_budget(log, f"{kills * 4 // 5}e-1")  # a release costs 0.1
rng = random.Random(7)
longest = 0.02
for i in range(kills):
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            veilog.release(log, "laplace", epsilon="0.1", largest_log=1000 + i, ledger=path).save(f"{folder}/{i}.csv")
        except BudgetError:
            os._exit(3)
        os._exit(0)
    if i % 10:
        time.sleep(rng.uniform(0, 1.2 * longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    else:
        os.waitpid(child, 0)
        longest = time.monotonic() - began
    (account,) = Ledger.open(path).show()
    assert account.spent[0] <= account.budget[0], account.spent
    charged = {e.parameters["largest_log"]: e for e in account.entries if e.state in ("charged", "written")}
    for j in range(i + 1):
        if os.path.exists(f"{folder}/{j}.csv"):
            assert charged[1000 + j].epsilon * 10 == 1, j
states = [e.state for e in account.entries]
outputs = sum(name.endswith(".csv") for name in os.listdir(folder))
print(outputs, *(states.count(s) for s in ("reserved", "charged", "written")))
"""
)


def run_script(script: str, *arguments: object) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@forks
def test_sixteen_at_once_on_a_budget_for_five(tmp_path: Path) -> None:
    ends = run_script(TOGETHER, tmp_path)
    assert sorted(ends) == [0] * 5 + [3] * 11
    assert len(list(tmp_path.glob("*.csv"))) == 5
    assert spent(tmp_path / "log.ledger") == 5


@forks
def test_killed_at_any_moment_no_output_is_without_its_charge(tmp_path: Path) -> None:
    kills = int(os.environ.get("VEILOG_KILLS", "15"))
    outputs, _reserved, charged, written = run_script(KILLED, tmp_path, kills)
    assert 2 <= outputs <= charged + written
    assert veilog.read(next(tmp_path.glob("*.csv"))).cases.num_rows > 0


# Ledgers that cannot be used ------------------------------------------------------------------------------------------


@pytest.fixture
def used(path: Path) -> Path:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 7, "1e-3")
    for epsilon in ("0.25", "1"):
        veilog.release(SMALL, "laplace", epsilon=epsilon, ledger=ledger)
    return path


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


def test_forged_content_is_refused(used: Path) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("UPDATE releases SET epsilon = '1/8' WHERE release = 1")
    with pytest.raises(InputError, match=r"log\.ledger: This ledger is damaged\. Put a backup in its place"):
        Ledger.open(used)


def test_removed_rows_are_noticed(used: Path) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection, connection:
        connection.execute("DELETE FROM releases WHERE release = 2")
    with pytest.raises(InputError, match="damaged"):
        Ledger.open(used)


def test_a_ledger_of_a_newer_version_is_refused(used: Path) -> None:
    with contextlib.closing(sqlite3.connect(used)) as connection:
        connection.execute("PRAGMA user_version = 9")
    before = used.read_bytes()
    with pytest.raises(InputError, match="newer veilog"):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=used)
    assert used.read_bytes() == before


def test_another_database_or_file_is_left_as_it_is(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")
    (tmp_path / "text").write_text("case,activity\n")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("db", "text", "empty"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="not a ledger"):
            veilog.release(SMALL, "laplace", epsilon=1, ledger=tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_folders_and_links_to_nothing_are_refused_and_links_are_followed(used: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="directory"):
        Ledger.open(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match="link"):
        Ledger.open(tmp_path / "nowhere", create=True)
    with pytest.raises(InputError, match="no such ledger"):
        Ledger.open(tmp_path / "gone")
    with pytest.raises(OutputError, match="folder does not exist"):
        Ledger.open(tmp_path / "gone" / "x.ledger", create=True)
    with pytest.raises(InputError, match="cannot be used"):
        Ledger.open("a\0b")
    (tmp_path / "link").symlink_to(used)
    veilog.release(SMALL, "laplace", epsilon=1, ledger=tmp_path / "link")
    assert spent(used) == Fraction(9, 4)


def test_a_locked_ledger_is_waited_for_and_then_refused(used: Path) -> None:
    told = []
    with contextlib.closing(sqlite3.connect(used, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        ledger = Ledger(used, patience=0.5, waiting=lambda text, fraction: told.append(text))
        with pytest.raises(OutputError, match="locked by another program"):
            ledger.reserve(SMALL, "x", epsilon=Fraction(1))
        with pytest.raises(OutputError, match="locked"):
            ledger.show()
    assert told[0] == "waiting for the ledger log.ledger"
    ledger.reserve(SMALL, "x", epsilon=Fraction(1))


def test_without_a_writable_ledger_there_is_no_release(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(place: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True, isolation_level=None)

    monkeypatch.setattr(ledger_file, "_connected", read_only)
    assert len(Ledger.open(used).show()) == 1
    with pytest.raises(OutputError, match="read-only"):
        veilog.release(SMALL, "laplace", epsilon=1, ledger=used)


def test_names_that_are_no_text_can_be_entered(path: Path) -> None:
    ledger = Ledger.open(path, create=True, name="log\udcff.xes")
    held = ledger.reserve(SMALL, "x", epsilon=Fraction(1), unit="\udcff", parameters={"rules": "\udcff"})
    assert held.account().name == "log?.xes"
    json.dumps(held.account().to_json()).encode()


def test_fractions_of_any_length_are_kept_and_never_shrink(path: Path) -> None:
    long = Fraction(1, 3) + Fraction(1, 10**4000)
    held = Ledger.open(path, create=True).reserve(SMALL, "x", epsilon=long)
    (kept, _) = held.account().spent or (Fraction(0), None)
    assert long <= kept < long + Fraction(1, 10**100)


# Runs that go on later -----------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_with_its_reservation_and_only_once(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    number = ledger.reserve(SMALL, "training", epsilon=Fraction(1)).number
    with pytest.raises(BudgetError, match="no open reservation"):
        ledger.resume(OTHER, number)
    again = ledger.resume(SMALL, number)
    assert isinstance(again, Reservation)
    again.settle(guarantee(Fraction(1)))
    assert spent(path) == 1
    with pytest.raises(BudgetError, match="no open reservation"):
        ledger.resume(SMALL, number)
    with pytest.raises(InputError, match="no longer"):
        again.settle(guarantee(Fraction(1)))
