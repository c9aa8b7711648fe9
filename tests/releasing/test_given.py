"""Whatever names a log will do wherever a log is wanted, and is read once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital

LOG = hospital(60, seed=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    for name in ("log.xes", "pieces/a.parquet"):
        (folder / name).parent.mkdir(exist_ok=True)
        veilog.write(LOG, folder / name)
    return folder


RELEASED = veilog.release(LOG, "laplace", epsilon=1, activities="log", depth=3)

CALLS: dict[str, Callable[[Any, Path], Any]] = {
    "suggest": lambda log, to: veilog.suggest(log, epsilon=1, seed=1),
    "twin": lambda log, to: veilog.twin(log, epsilon=1, seed=1),
    "ledger": lambda log, to: _account(log, to),
    "plan": lambda log, to: veilog.Ledger.open(to / "plan.ledger", create=True).set_plan(log, 2, 1, 1e-6),
    "report": lambda log, to: veilog.report.write(RELEASED, to / "page.html", log, overwrite=True),
    "dossier": lambda log, to: veilog.dossier(RELEASED, log),
    "audit": lambda log, to: veilog.audit("laplace", epsilon=1, log=log, activities="log", depth=2, runs=20, seed=1),
}


def _account(log: Any, to: Path) -> veilog.Account | None:
    book = veilog.Ledger.open(to / "own.ledger", create=True)
    book.set_budget(log, 1)
    found = book.account(log)
    assert found is not None and found == book.account(LOG)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_log_is_taken_however_it_is_given(call: str, place: Path, tmp_path: Path) -> None:
    frame = LOG.to_pandas()
    for given in (LOG.variants, place / "log.xes", str(place / "log.xes"), frame):
        try:
            CALLS[call](given, tmp_path)
        except veilog.ParameterError as error:
            assert (call, error.code) == ("audit", "audit-runs-too-few")


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_log_is_refused_in_words(call: str, tmp_path: Path) -> None:
    with pytest.raises(veilog.VeilogError):
        CALLS[call](3, tmp_path)


@pytest.mark.slow
def test_a_log_is_written_however_it_is_given(place: Path, tmp_path: Path) -> None:
    for given in (place / "log.xes", LOG.to_pandas()):
        veilog.write(given, tmp_path / "again.csv", overwrite=True)
        assert veilog.read(tmp_path / "again.csv").variants == LOG.variants
    with refused(veilog.InputError, "variants-not-writable"):
        veilog.write(LOG.variants, tmp_path / "again.csv")
    with refused(veilog.InputError, "log-type-unknown"):
        veilog.write(RELEASED, tmp_path / "again.csv")


@pytest.mark.slow
def test_a_report_and_a_dossier_know_a_release_by_its_file(tmp_path: Path) -> None:
    RELEASED.save(tmp_path / "out.xes")
    veilog.report.write(str(tmp_path / "out.xes"), tmp_path / "page.html")
    assert "laplace" in (tmp_path / "page.html").read_text()
    assert veilog.dossier(tmp_path / "out.xes").parts
    for call in (veilog.dossier, veilog.report.html):
        with refused(veilog.InputError, "report-guarantee-of-variants"):
            call(RELEASED.variants)


@pytest.mark.slow
def test_several_files_are_read_as_one_table(place: Path) -> None:
    for given in (place / "pieces", str(place / "pieces" / "*.parquet")):
        assert veilog.release(given, "evolve", epsilon=1, activities="log", seed=1).variants.cases
        with refused(veilog.ParameterError, "question-extras-of-variants"):
            veilog.release(given, "evolve", epsilon=1, activities="log", times=0.3)
    assert isinstance(veilog.read(place / "log.xes"), EventLog)


def test_training_reads_a_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("veilog.training._train", lambda planned, log, *rest: seen.append(log))
    veilog.train(place / "log.xes", "travag", epsilon=1, delta=1e-6, activities="log")
    assert seen[0].variants == LOG.variants


@pytest.mark.parametrize("call", [veilog.read, veilog.validate, veilog.read_variants])
def test_a_log_that_was_read_is_not_said_to_be_none(call: Callable[[Any], Any]) -> None:
    """A log that was already read is named as such in the error."""
    with refused(veilog.InputError, "log-already-read"):
        call(LOG)
