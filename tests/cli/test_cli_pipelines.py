"""Contracts for programs: status, errors as JSON, results, quiet and completion."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import veilog
from veilog.cli import _COMMANDS, application, main
from veilog.logs.synthetic.hospital import hospital

COUNTS = ["-m", "laplace", "-p", "depth=3", "--no-compare"]
PUBLIC = ["--activities", "log"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    veilog.write(hospital(40, seed=1), "log.xes")
    return Path("log.xes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "kind", "facts"),
    [
        (["info", "gone.xes"], 1, "InputError", {"path": "gone.xes"}),
        (["release", "log.xes", "x.xes"], 2, "UsageError", {}),
        (["release", "log.xes", "x.xes", "-m", "evolv"], 2, "ParameterError", {"parameter": "method"}),
        (["release", "log.xes", "x.xes", *COUNTS, "--epsilon", "1"], 2, "UndeclaredError", {"facts": ["activities"]}),
        (
            ["release", "log.xes", "x.xes", *COUNTS, *PUBLIC, "--epsilon", "2", "--ledger", "a.ledger"],
            3,
            "BudgetError",
            {"account": 1},
        ),
        (["release", "log.xes", "x.xes", "-m", "travas", "--epsilon", "0.01", "--delta", "1e-9"], 4,
         "EmptyReleaseError", {"path": "x.xes"}),
        (["release", "log.xes", "no/x.xes", *COUNTS, "--epsilon", "1"], 5, "OutputError", {"path": "no/x.xes"}),
    ],
)  # fmt: skip
def test_a_failure_has_its_status_and_its_json(
    arguments: list[str],
    status: int,
    kind: str,
    facts: dict[str, object],
    log: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    veilog.Ledger.open("a.ledger", create=True).set_budget(veilog.read(log), 1)
    assert main([*arguments, "--json", "-"]) == status
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["kind"], error["status"]) == (kind, status)
    assert facts.items() <= error.items()
    assert " ".join(error["message"].split())[:40] in " ".join(err.split())
    assert main([*arguments, "--json=told.json"]) == status
    assert json.loads(Path("told.json").read_text())["error"]["kind"] == kind
    assert not Path("x.xes").exists()


def test_an_option_after_json_is_no_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "log.xes", "--json", "--details", "out"]) == 2
    assert sorted(path.name for path in Path().iterdir()) == ["log.xes"]


def test_a_result_says_what_it_is_about_and_of_the_raw_log_to_its_owner_alone(log: Path) -> None:
    assert main(["release", "log.xes", "out.xes", *COUNTS, *PUBLIC, "--epsilon", "1", "--json", "told.json"]) == 0
    told = json.loads(Path("told.json").read_text())
    about, owner_only = told.pop("about"), told.pop("owner_only")
    assert (about["schema"], about["command"], about["veilog"]) == (1, "release", veilog.__version__)
    made, read = (hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in ("out.xes", "log.xes"))
    assert about["output"] == [{"path": "out.xes", "sha256": made}]
    assert owner_only["input"] == [{"path": "log.xes", "sha256": read}]
    assert read not in json.dumps([told, about])


@pytest.mark.slow
def test_quiet_prints_errors_only(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quiet", "info", "log.xes"]) == 0
    assert main(["info", "log.xes", "--quiet", "--json", "told.json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads(Path("told.json").read_text())["cases"] == 40
    assert main(["info", "gone.xes", "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("Error: gone.xes")
    assert main(["info", "log.xes"]) == 0
    assert "most frequent" in capsys.readouterr().out


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("release", "guessing-advantage", "export"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-p", "eps=1"], "--epsilon 1."),
        (["--epsilon", "1", "-p", "max_cases=3"], "--max-cases 3."),
    ],
)
def test_a_setting_that_is_an_option_of_its_own_is_told_which(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "log.xes", "x.xes", "-m", "evolve", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_list_of_all_commands_loads_none_of_them() -> None:
    """The list of commands has the first line of each one's help, without loading it."""
    code = "import sys; from veilog.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "pyarrow", "veilog.releasing"} & set(done.stdout.split())
    whole = application(whole=True)
    for commands in _COMMANDS.values():
        for name, does in commands.items():
            assert " ".join(whole[name].help.split("\n\n")[0].split()) == does


@pytest.mark.slow
def test_every_command_of_the_help_is_in_a_group() -> None:
    app = application(whole=True)
    titles = {name: {group.name for group in app[name].group} for name in app if not name.startswith("-")}
    assert titles.pop("completion") == {"More"}
    assert all(titles.values()) and titles["ledger"] == {"Keep account"}
