"""Releases without a named ledger are in the user's, or listed there uncounted."""

import stat
from pathlib import Path

import pytest
from refusals import refused

import veilog
from veilog._files import default_ledger
from veilog.errors import OutputError
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital

LOG = hospital(30, seed=77)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VEILOG_LEDGER")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path


def released(epsilon: str = "0.4", **more: object) -> veilog.Release:
    return veilog.release(LOG, "laplace", depth=1, epsilon=epsilon, activities=ACTIVITIES, **more)  # type: ignore[arg-type]


def codes(made: veilog.Release) -> list[str]:
    return [warning.code for warning in made.owner_only.warnings]


def account() -> veilog.Account:
    place = default_ledger()
    assert place is not None
    found = Ledger.open(place).account(LOG)
    assert found is not None
    return found


@pytest.mark.slow
def test_releases_add_up_where_no_ledger_is_named() -> None:
    """Releases add up in the user's ledger where no ledger is named."""
    for _ in range(2):
        assert released().entry is not None
    veilog.suggest(LOG, epsilon=1, for_="prediction")
    veilog.twin(LOG, epsilon="0.1")
    assert float(account().spent[0]) == pytest.approx(1.0)  # type: ignore[index]
    assert [entry.method for entry in account().entries] == ["laplace", "laplace", "suggest", "twin"]
    place = default_ledger()
    assert place is not None and stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert Ledger.open(place).set_budget(LOG, 2).left == (1, 0)


@pytest.mark.nightly
def test_experiments_are_entered_only_where_a_ledger_is_named(home: Path) -> None:
    assert released(seed=1).entry is None and released(seed=1, ledger=False).owner_only.warnings == ()
    veilog.twin(LOG, epsilon="0.1", seed=1)
    place = default_ledger()
    assert place is not None and not place.exists()
    assert released(seed=1, ledger=home / "named.ledger").entry is not None


@pytest.mark.slow
def test_what_is_kept_out_is_listed_as_not_counted() -> None:
    assert codes(released(ledger=False)) == ["one-release-uncounted"]
    veilog.twin(LOG, epsilon="0.1", ledger=False)
    veilog.suggest(LOG, epsilon=1, for_="prediction", ledger=False)
    assert [entry.method for entry in account().uncounted] == ["laplace", "twin", "suggest"]
    assert account().spent == (0, 0)
    assert codes(released()) == ["releases-uncounted"]


@pytest.mark.slow
def test_no_ledger_is_kept_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("VEILOG_LEDGER", "none")
    assert released().entry is None and released(ledger=False).owner_only.warnings == ()
    assert not (home / "home").exists()
    monkeypatch.setenv("VEILOG_LEDGER", str(home / "mine.ledger"))
    assert released().entry is not None and (home / "mine.ledger").exists()


@pytest.mark.slow
def test_a_release_that_takes_the_sum_to_a_lower_level_has_a_code() -> None:
    assert codes(released("1")) == [], "the level of the first is its own"
    assert codes(released("0.5")) == ["account-level-falls"]
    lower = account().strength
    assert codes(released("0.01")) == [] and account().strength == lower, "it fell once"
    assert codes(released("1.5")) == ["account-level-falls"]


@pytest.mark.slow
def test_a_new_ledger_says_what_the_user_s_own_has_of_the_log(home: Path) -> None:
    released("0.1")
    made = released("0.1", ledger=home / "log.ledger")
    assert codes(made) == ["release-in-another-ledger"]
    assert codes(released("0.1", ledger=home / "log.ledger")) == []


@pytest.mark.slow
def test_the_code_is_in_owner_only_and_in_nothing_that_is_given_away(tmp_path: Path) -> None:
    released("1")
    made = released("1.5")
    told = made.to_json()
    assert told["owner_only"]["warnings"][0]["code"] == "account-level-falls"  # type: ignore[index]
    rest = {name: value for name, value in told.items() if name != "owner_only"}
    made.save(tmp_path / "out.xes")
    for text in (repr(made), str(rest), (tmp_path / "out.xes").read_text(), made._repr_html_()):
        assert "account-level-falls" not in text and "level falls" not in text


@pytest.mark.slow
def test_a_ledger_that_has_no_place_is_an_error_and_costs_nothing(home: Path) -> None:
    (home / "home").write_text("no folder")
    with refused(OutputError, "ledger-folder-not-made"):
        released()
    assert released(ledger=False).entry is None, "whoever wants none is not stopped by it"
