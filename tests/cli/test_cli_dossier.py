"""The command dossier, and the option --dossier of a release."""

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from commands import code_of

import veilog
from veilog.cli import main
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.account_notes import LedgerStatus
from veilog.report.facts import today
from veilog.report.words import other_accounts_sentence, other_releases_sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a log and a release of it."""
    place = tmp_path_factory.mktemp("dossier")
    log = hospital(200, seed=1)
    veilog.write(log, place / "log.xes")
    names = list(log.variants.labels)
    veilog.release(log.variants, "laplace", epsilon=1, activities=names, depth=4).save(place / "release.xes")
    veilog.release(log, "tlkc", as_published=True, k=5, l=2).save(place / "published.xes")
    return place


def shown_by(page: Path) -> str:
    """Return the words of a page, or of Markdown, without markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>|\\", "", page.read_text())).split())


def test_it_writes_a_page_and_the_record_beside_it(folder: Path, tmp_path: Path) -> None:
    target, answer = tmp_path / "dossier.html", tmp_path / "answer.json"
    assert main(["dossier", str(folder / "release.xes"), str(target), "--json", str(answer)]) == 0
    told = json.loads(answer.read_text())
    assert told["edition"] == "recipient" and told["registry"] == str(tmp_path / "dossier.registry.yaml")
    assert told["guarantee"]["epsilon"] == 1.0
    text = target.read_text()
    assert "☐" in text and "☑" in text and "Not for release" not in text
    assert (tmp_path / "dossier.registry.yaml").read_text().startswith("url_slug: ")


@pytest.mark.nightly
def test_with_the_original_it_is_for_the_owner_and_knows_the_ledger(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.xes"
    log.write_bytes((folder / "log.xes").read_bytes())
    out = tmp_path / "out.xes"
    more = ["-m", "laplace", "--epsilon", "1", "--activities", "log", "-p", "depth=4", "--no-compare"]
    assert main(["ledger", "set", str(log), "--epsilon", "5"]) == 0
    for _ in range(2):
        assert (
            main(["release", str(log), str(out), "--overwrite", *more, "--dossier", str(tmp_path / "at-once.md")]) == 0
        )
    target = tmp_path / "dossier.md"
    assert main(["dossier", str(out), str(target), "--original", str(log)]) == 0
    text = target.read_text()
    assert "Not for release" in text and "log.xes" in text
    standing = LedgerStatus.of_entry(Ledger.open(f"{log}.ledger"), 2)
    state, known = other_releases_sentence(standing)
    assert standing.account is not None and standing.account.spent == (2, 0) and state == "checked"
    assert known in text
    once = (tmp_path / "at-once.md").read_text()
    assert "out.xes, SHA-256" in once and known not in once and "Not for release" not in once
    page = tmp_path / "internal-report.html"
    assert main(["report", str(out), str(page), "--original", str(log)]) == 0
    assert known in shown_by(page) and "out.xes, SHA-256" in page.read_text()


@pytest.mark.nightly
def test_the_owner_is_told_of_the_other_accounts_of_the_ledger(folder: Path, tmp_path: Path) -> None:
    """The owner sees the other accounts, because last month's log is another log."""
    log, out = tmp_path / "log.xes", tmp_path / "out.xes"
    log.write_bytes((folder / "log.xes").read_bytes())
    before = Ledger.open(f"{log}.ledger", create=True, name="last-month.csv")
    before.reserve(hospital(70, seed=9).variants, "laplace", epsilon=Fraction(1))
    made = ["--method", "evolve", "--epsilon", "1", "--activities", "log", "--no-compare"]
    assert main(["release", str(log), str(out), *made]) == 0
    assert main(["dossier", str(out), str(tmp_path / "later.md"), "--original", str(log)]) == 0
    assert main(["report", str(out), str(tmp_path / "later.html"), "--original", str(log)]) == 0
    standing = replace(LedgerStatus.of_entry(before, 2), as_of=today())
    state, alone = other_releases_sentence(standing)
    assert (state, standing.names) == ("checked", ("last-month.csv",))
    for name in ("later.md", "later.html"):
        text = shown_by(tmp_path / name)
        assert alone in text and other_accounts_sentence(standing) in text, name


def test_an_original_with_nothing_in_common_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.csv").write_text("case,activity,time\n1,lathe,2024-01-01\n1,mill,2024-01-02\n")
    for command, target in (("dossier", "d.md"), ("report", "page.html")):
        arguments = [command, folder / "release.xes", tmp_path / target]
        assert code_of(capsys, *arguments, "--original", tmp_path / "other.csv") == (2, "release-not-of-log")
    assert [file.name for file in tmp_path.iterdir()] == ["other.csv"]


def test_without_a_guarantee_it_says_no_and_registers_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, answer = tmp_path / "dossier.md", tmp_path / "answer.json"
    assert main(["dossier", str(folder / "published.xes"), str(target), "--json", str(answer)]) == 0
    told = json.loads(answer.read_text())
    assert told["registry"] is None and told["guarantee"]["status"] == "none"
    assert "☐" in target.read_text() and "☑" not in target.read_text()
    answer.unlink()
    assert [file.name for file in tmp_path.iterdir()] == ["dossier.md"]
    registering = ("dossier", folder / "published.xes", tmp_path / "b.md", "--registry", tmp_path / "record.yaml")
    assert code_of(capsys, *registering) == (5, "dossier-nothing-proven")
    assert [file.name for file in tmp_path.iterdir()] == ["dossier.md"]


def test_a_record_that_is_no_yaml_is_refused_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    record = ["--registry", str(tmp_path / "record.xes")]
    assert main(["dossier", str(folder / "release.xes"), str(tmp_path / "d.md"), *record]) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_release_refuses_a_dossier_it_could_not_write_before_anything_is_asked(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.xes"
    more = ["-m", "laplace", "--epsilon", "1", "--activities", "log", "-p", "depth=4"]
    assert main(["release", str(folder / "log.xes"), str(out), *more, "--dossier", str(tmp_path / "log.xes")]) == 5
    same = ["--recipient-report", str(tmp_path / "a.html"), "--dossier", str(tmp_path / "a.html")]
    assert main(["release", str(folder / "log.xes"), str(out), *more, *same]) == 5
    assert list(tmp_path.iterdir()) == []
