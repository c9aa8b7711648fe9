"""The ledger: charges are exact, durable first, and never above the budget."""

import contextlib
import gzip
import hashlib
import sqlite3
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random

import openly
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_tools import OTHER, SMALL, guarantee, spent
from refusals import refused

import veilog
from veilog._files import atomic_target
from veilog.errors import BudgetError, OutputError, ParameterError
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.store import fingerprint
from veilog.logs.synthetic.hospital import hospital
from veilog.privacy.curator import Curator


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


def test_a_release_is_reserved_then_charged_then_written(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    held = ledger.reserve(SMALL, "laplace", epsilon=Fraction(1), parameters={"depth": 3})
    (entry,) = held.entered.account().entries
    assert (entry.state, entry.epsilon, entry.parameters) == ("reserved", 1, {"depth": 3})
    held.settle(guarantee(Fraction(1, 3)))
    (entry,) = held.entered.account().entries
    assert (entry.state, entry.epsilon) == ("charged", Fraction(1, 3))
    assert entry.guarantee is not None and entry.guarantee["status"] == "proven"
    with atomic_target(tmp_path / "out", held.entered.naming(tmp_path / "out")) as file:
        file.write(b"released")
    (entry,) = held.entered.account().entries
    assert entry.state == "written"
    assert len(entry.outputs) == 1


@pytest.mark.slow
def test_the_digest_in_the_ledger_is_that_of_the_file(path: Path, tmp_path: Path) -> None:
    released = openly.release(SMALL, "laplace", epsilon=1, ledger=path)
    released.save(tmp_path / "out.csv")
    released.save(tmp_path / "out.xes.gz")
    (account,) = Ledger.open(path).show()
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("out.csv", "out.xes.gz")]
    assert list(account.entries[0].outputs) == digests


@pytest.mark.slow
def test_a_ledger_that_vanished_is_told_after_the_file_is_written(path: Path, tmp_path: Path) -> None:
    released = openly.release(SMALL, "laplace", epsilon=3, ledger=path)
    path.unlink()
    with refused(OutputError, "ledger-file-not-noted") as caught:
        released.save(tmp_path / "out.csv")
    assert caught.value.path == str(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_sums_are_exact_so_that_ten_tenths_fit_into_one(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 1)
    for _ in range(10):
        openly.release(SMALL, "laplace", epsilon=0.1, ledger=ledger)
    assert spent(path) == 1
    with refused(BudgetError, "budget-exceeded", budget="1", left="0"):
        openly.release(SMALL, "laplace", epsilon="1e-9", ledger=ledger)


@pytest.mark.slow
def test_delta_has_a_budget_of_its_own(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 10, "1e-5")
    openly.release(SMALL, "evolve", epsilon=1, delta="1e-5", ledger=ledger)
    with refused(BudgetError, "budget-exceeded", word="delta", asked="1e-07", budget="1e-05", left="0"):
        openly.release(SMALL, "travas", epsilon=1, delta="1e-7", ledger=ledger)
    assert spent(path) == 1


def test_too_dear_a_release_is_refused_before_any_question(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 1)

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("a question was asked")

    for question in ("count", "concentration", "histogram", "sums", "partitions", "peek", "peek_log"):
        monkeypatch.setattr(Curator, question, asked)
    with pytest.raises(BudgetError):
        openly.release(SMALL, "laplace", epsilon="1.001", ledger=ledger)
    assert spent(path) == 0


@pytest.mark.slow
def test_the_reservation_stands_while_questions_are_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    histogram = Curator.histogram

    def looked(self: Curator, *a: object, **k: object) -> object:
        (account,) = Ledger.open(path).show()
        seen.append((account.entries[0].state, account.entries[0].epsilon))
        return histogram(self, *a, **k)  # type: ignore[call-overload]

    monkeypatch.setattr(Curator, "histogram", looked)
    openly.release(SMALL, "laplace", epsilon=2, ledger=path)
    assert set(seen) == {("reserved", Fraction(2))}


def test_a_release_that_fails_is_charged_what_it_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = Curator.histogram

    def fails(self: Curator, *a: object, **k: object) -> object:
        histogram(self, *a, **k)  # type: ignore[call-overload]
        raise KeyboardInterrupt

    monkeypatch.setattr(Curator, "histogram", fails)
    with pytest.raises(KeyboardInterrupt):
        openly.release(SMALL, "laplace", epsilon=1, ledger=path)
    (entry,) = Ledger.open(path).show()[0].entries
    assert entry.state == "charged"
    assert entry.epsilon is not None and 0 < entry.epsilon < 1


def test_a_release_that_fails_before_it_asks_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Curator, *_: object, **__: object) -> object:
        raise ParameterError("not so")

    monkeypatch.setattr(Curator, "histogram", fails)
    with refused(ParameterError, "not so"):
        openly.release(SMALL, "laplace", epsilon=1, ledger=path)
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
        with refused(BudgetError, "release-over-reservation"):
            held.settle(broken)
        assert held.entered.account().entries[-1].state == "reserved"
    assert spent(path) == 3


@pytest.mark.slow
def test_what_nothing_bounds_is_recorded_without_a_budget_and_refused_with_one(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    openly.release(SMALL, "sacofa", epsilon=1, as_published=True, ledger=ledger)
    openly.release(SMALL, "laplace", epsilon=1, seed=1, ledger=ledger)
    (account,) = ledger.show()
    assert [entry.epsilon for entry in account.entries] == [None, None]
    assert account.spent is None
    assert ledger.set_budget(SMALL, 5).left == (0, 0)
    with pytest.raises(BudgetError, match="Nothing is left"):
        openly.release(SMALL, "laplace", epsilon=1, ledger=ledger)
    ledger.set_budget(OTHER, 5)
    for argument in ({"as_published": True}, {"seed": 1}):
        with pytest.raises(BudgetError, match="nothing bounds"):
            openly.release(OTHER, "laplace", epsilon=1, ledger=ledger, **argument)  # type: ignore[arg-type]


def test_as_published_is_charged_what_is_derived_where_something_is(path: Path) -> None:
    released = openly.release(SMALL, "laplace", epsilon=1, as_published=True, depth=4, ledger=path)
    assert released.guarantee.epsilon is not None and released.guarantee.epsilon > 1
    assert spent(path) == Fraction(str(released.guarantee.epsilon))


@pytest.mark.slow
def test_changed_data_do_not_evade_a_budget_unseen(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(SMALL, 2)
    known = openly.release(SMALL, "laplace", epsilon=1, ledger=ledger)
    assert known.owner_only.warnings == ()
    unknown = openly.release(OTHER, "laplace", epsilon="0.5", ledger=ledger)
    assert "log-unknown-beside-budget" in [warning.code for warning in unknown.owner_only.warnings]
    again = openly.release(OTHER, "laplace", epsilon="0.25", ledger=ledger)
    assert again.owner_only.warnings == (), "it has an account by now"
    joined = ledger.enter(OTHER, account=1)
    assert (joined.number, joined.left) == (1, (Fraction(1, 4), 0))
    openly.release(OTHER, "laplace", epsilon="0.25", ledger=ledger)
    with pytest.raises(BudgetError):
        openly.release(SMALL, "laplace", epsilon=1, ledger=ledger)


def test_accounts_that_are_put_together_keep_all_that_was_spent(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    for data in (SMALL, OTHER):
        openly.release(data, "laplace", epsilon=1, ledger=ledger)
    first, second = ledger.show()
    joined = ledger.set_budget(OTHER, 3, account=first.number)
    assert joined.spent == (2, 0)
    assert [account.number for account in ledger.show()] == [first.number]
    with refused(ParameterError, "ledger-account-missing"):
        ledger.enter(SMALL, account=second.number)


def test_putting_accounts_together_never_loses_a_budget(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.enter(SMALL)
    ledger.set_budget(OTHER, 2)
    assert ledger.enter(OTHER, account=1).budget == (2, 0)
    assert ledger.account(SMALL) == ledger.account(OTHER)


@pytest.mark.slow
def test_a_budget_below_what_is_spent_leaves_nothing(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    openly.release(SMALL, "laplace", epsilon=2, ledger=ledger)
    assert ledger.set_budget(SMALL, 1).left == (0, 0)
    assert ledger.set_budget(SMALL, 3).left == (1, 0)
    assert ledger.set_budget(SMALL, None).left is None


@pytest.mark.parametrize("epsilon", [0, "much"])
def test_budgets_that_are_none_are_refused(path: Path, epsilon: object) -> None:
    with pytest.raises(ParameterError):
        Ledger.open(path, create=True).set_budget(SMALL, epsilon)  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.slow
def test_costs_of_different_units_are_never_added_up(path: Path) -> None:
    log = veilog.read(_people())
    ledger = Ledger.open(path, create=True)
    openly.release(log, "laplace", epsilon=1, unit="patient", max_cases=2, ledger=ledger)
    account = ledger.set_budget(log, 3)
    assert (account.unit, account.left) == ("patient", (2, 0))
    with refused(BudgetError, "unit-not-of-budget"):
        openly.release(log, "laplace", epsilon=1, ledger=ledger)
    openly.release(log, "laplace", epsilon=2, unit="patient", max_cases=2, ledger=ledger)
    assert spent(path) == 3
    with refused(ParameterError, "account-unit-unbounded", listed="'patient'", unit="case"):
        ledger.set_budget(log, 3, unit="case")


def test_a_release_that_is_paid_for_is_not_lost_with_a_note_about_its_account(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(entered: EntryRef) -> Account:
        raise OutputError("The ledger is locked by another program.")

    monkeypatch.setattr(EntryRef, "account", locked)
    assert openly.release(SMALL, "laplace", epsilon=1, ledger=Ledger.open(path, create=True)).entry is not None
    assert spent(path) == 1


def _people() -> object:
    pa = pytest.importorskip("pyarrow")
    rows = [
        (f"c{i}", f"p{i % 7}", a, f"2024-01-{1 + i % 28:02}T0{j}:00:00") for i in range(40) for j, a in enumerate("ab")
    ]
    names = ("case:concept:name", "case:patient", "concept:name", "time:timestamp")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


@pytest.mark.slow
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
            assert held.entered.account().spent == (expected + asked, 0)
            assert expected + asked <= 2
            held.settle(guarantee(asked * share))
            expected += asked * share
        assert ledger.show()[0].spent == (expected, 0)


# Recognition ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_data_are_recognised_in_every_format(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    log = hospital(200, seed=5)
    expected = fingerprint(log)
    for name in ("log.xes", "log.xes.gz", "log.csv", "log.tsv.gz", "log.parquet"):
        veilog.write(log, tmp_path / name, lossy=True)
        assert fingerprint(veilog.read(tmp_path / name)) == expected, name
        assert fingerprint(veilog.read_variants(tmp_path / name)) == expected, name
    frame = log.to_pandas().sample(frac=1, random_state=1)
    assert fingerprint(veilog.read(frame)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sepsis", "receipt"])
def test_a_public_log_is_recognised_as_a_table(logs: Path, tmp_path: Path, name: str) -> None:
    log = veilog.read(logs / f"{name}.xes.gz")
    veilog.write(log, tmp_path / "log.csv", lossy=True)
    assert fingerprint(veilog.read_variants(tmp_path / "log.csv")) == fingerprint(log)


def test_the_same_log_is_known_by_other_names_columns_and_orders(tmp_path: Path) -> None:
    rows = [(case, step, f"2024-01-0{day}") for case in "abcd" for day, step in enumerate(("x", "y", "z"), 1)]
    found = set()
    for name, header, order in (
        ("log.csv", "case,activity,time", rows),
        ("renamed.csv.gz", "Fall,Schritt,Zeit", rows[::-1]),
        ("more.csv", "note,case,activity,time", [("kept", *row) for row in rows]),
    ):
        text = "\n".join([header, *(",".join(row) for row in order)]) + "\n"
        packed = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (tmp_path / name).write_bytes(packed)
        case, activity, time = header.split(",")[-3:]
        found.add(fingerprint(veilog.read(tmp_path / name, case=case, activity=activity, timestamp=time)))
    assert len(found) == 1


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4).map(tuple), min_size=1, max_size=8), st.randoms())
def test_a_log_is_known_by_how_many_cases_have_which_activities(traces: list[tuple[str, ...]], rng: Random) -> None:
    """A log is known by how many cases have which activities, and by nothing else.

    Neither the order of cases nor that of a case's events counts, nor cases without events.
    """
    mixed = [tuple(rng.sample(trace, len(trace))) for trace in traces]
    rng.shuffle(mixed)

    def known(cases: list[tuple[str, ...]]) -> bytes:
        return fingerprint(veilog.Variants.from_dict(Counter(cases)))

    assert known(mixed) == known([*traces, ()])
    assert known([*traces, ("a",)]) != known(traces), "one case more"
    assert known([(*traces[0], "a"), *traces[1:]]) != known(traces), "one event more"
    if any("a" in trace for trace in traces):
        renamed = [tuple("d" if step == "a" else step for step in trace) for trace in traces]
        assert known(renamed) != known(traces), "another label"


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


@pytest.mark.slow
@pytest.mark.false_alarm(
    1e-5, "five words of 4 bytes that no digest in hex has, in 4 kB of random bytes: 5 * 4096 / 256**4"
)
def test_nothing_of_the_log_is_in_the_ledger(tmp_path: Path, path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    acts = [f"Zqxw{i}yjob" for i in range(5)]
    rows = [
        (f"Wvyk{i}case", acts[(i + j) % 5], f"2024-03-{1 + i % 28:02}T0{j}:00:00", f"Kjhq{(i + j) % 3}value")
        for i in range(900)
        for j in range(3)
    ]
    names = ("case:concept:name", "concept:name", "time:timestamp", "ward")
    log = veilog.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}))
    for method in ("evolve", "laplace", "df-laplace", "sapa", "sacofa"):
        openly.release(log, method, epsilon=1, ledger=path).save(tmp_path / "o.csv", overwrite=True)
    openly.release(log, "travas", epsilon=1, delta=0.01, ledger=path)
    openly.release(log, "evolve", epsilon=5, delta=0.01, times=0.3, attributes=["ward"], window="log", ledger=path)
    openly.release(log, "utravas", epsilon=1, delta=0.01, as_published=True, ledger=path)
    content = path.read_bytes()
    assert b"evolve" in content
    for word in (b"Zqxw", b"yjob", b"Wvyk", b"Kjhq", b"2024-03", *(a.encode() for a in acts)):
        assert word not in content
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_sum_over_persons_is_for_those_of_no_more_cases_than_the_least_that_was_said(path: Path) -> None:
    """A sum for persons of at most 5 and of 3 cases is for those of at most 3."""
    ledger = Ledger.open(path, create=True)
    for most in (5, 3):
        openly.release(SMALL, "laplace", epsilon=1, unit="person", max_cases=most, ledger=ledger)
    (account,) = ledger.show()
    assert (account.unit, account.most_cases, account.spent) == ("person", 3, (2, 0))
    assert account.totals()["most_cases"] == 3


@pytest.mark.slow
def test_an_account_is_worth_what_its_sum_is(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    found = []
    for _ in range(4):
        openly.release(SMALL, "laplace", epsilon=1, ledger=ledger)
        found.append(ledger.show()[0].strength)
    assert found == ["good", "moderate", "weak", "none in practice"]
