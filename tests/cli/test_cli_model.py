"""The commands that train a model and draw from it: output, refusals and stops."""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import error_of, run
from refusals import sentence

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital
from veilog.methods import travag
from veilog.methods.travag import private_training as travag_certified
from veilog.methods.travag import published_training as travag_published

LEARN = ["--epsilon", "2", "--delta", "1e-3", "-p", "free_generator_steps=20", "--no-ledger"]


@pytest.fixture(scope="module")
def log(folder: Path) -> Path:
    path = folder / "hospital.parquet"
    veilog.write(hospital(800, seed=3), path)
    return path


@pytest.fixture(scope="module")
def model(folder: Path, log: Path) -> Path:
    """Return the path of a model whose log is gone."""
    path, copy = folder / "hospital.model", folder / "gone.parquet"
    copy.write_bytes(log.read_bytes())
    assert main(["train", str(copy), str(path), *LEARN]) == 0
    copy.unlink()
    return path


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    status, out, err = run(capsys, *arguments, "--json", "-")
    assert (status, err) == (0, "")
    return json.loads(out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    status, _, err = run(capsys, *arguments)
    assert status in (1, 2, 5)
    assert err.startswith("Error: ")
    assert "Traceback" not in err
    assert err.count("\n") == 1
    return err


@pytest.mark.nightly
def test_training_says_what_it_guarantees(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    facts = as_json(capsys, "train", log, tmp_path / "m", *LEARN)
    guarantee = facts["guarantee"]
    assert (guarantee["status"], guarantee["epsilon"], guarantee["delta"]) == ("proven", 2.0, 0.001)
    assert facts["columns"] > 1
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    inspected = as_json(capsys, "inspect", tmp_path / "m")
    assert inspected["guarantee"] == guarantee
    assert inspected["size"] == (tmp_path / "m").stat().st_size
    assert sum(row["share"] for row in inspected["frequent"]) <= 1


@pytest.mark.slow
def test_inspect_shows_guarantee_and_variants(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    status, out, _ = run(capsys, "inspect", model)
    assert status == 0
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", out).split())
    assert veilog.Model.load(model).guarantee.in_words() in words
    assert "most frequent variants" in words
    assert "Registration" in words


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xes", ".xes.gz", ".csv", ".tsv", ".parquet"])
def test_cases_are_drawn_without_the_log(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, suffix: str
) -> None:
    facts = as_json(capsys, "sample", model, tmp_path / f"out{suffix}", "--cases", 300, "--seed", 1)
    drawn = veilog.read(tmp_path / f"out{suffix}").variants
    assert (facts["cases"], facts["events"], facts["variants"]) == (300, drawn.events, len(drawn))
    assert drawn.cases == 300
    assert set(drawn.to_dict()) <= set(veilog.Model.load(model).columns)
    run(capsys, "sample", model, tmp_path / f"again{suffix}", "--cases", 300, "--seed", 1)
    assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"out{suffix}").read_bytes()


@pytest.mark.slow
def test_many_cases_are_written_in_pieces_as_few_are(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, "sample", model, tmp_path / "few.xes", "--cases", 2500, "--seed", 1)
    monkeypatch.setattr("veilog.training._WHOLE", 1000)
    run(capsys, "sample", model, tmp_path / "many.xes", "--cases", 2500, "--seed", 1)
    assert (tmp_path / "many.xes").read_bytes() == (tmp_path / "few.xes").read_bytes()


@pytest.mark.slow
def test_a_drawn_log_says_where_it_is_from(capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path) -> None:
    run(capsys, "sample", model, tmp_path / "out.xes", "--cases", 5)
    text = (tmp_path / "out.xes").read_text()
    assert '<string key="privacy:method" value="travag"/>' in text
    assert '<string key="privacy:status" value="proven"/>' in text
    assert '<float key="privacy:epsilon" value="2.0"/>' in text
    events = veilog.read(tmp_path / "out.xes").events
    assert events.column("lifecycle:transition").to_pylist() == ["complete"] * len(events)


@pytest.mark.slow
def test_without_a_number_about_as_many_cases_come_as_the_log_had(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    facts = as_json(capsys, "sample", model, tmp_path / "out.csv")
    assert facts["cases"] == facts["cases_expected"] == veilog.Model.load(model).cases


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xes", ".csv", ".parquet"])
def test_more_than_the_disk_holds_is_refused_at_once(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10**6})())
    error = error_of(capsys, "sample", model, tmp_path / f"out{suffix}", "--cases", 10**9)
    assert (error["status"], error["code"]) == (5, "model-cases-over-memory") and "1,000,000,000 " in error["problem"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_stream_is_a_case_a_line(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    status, out, err = run(capsys, "sample", model, "--stream", "--cases", 2000, "--seed", 4)
    assert (status, err) == (0, "")
    traces = [tuple(json.loads(line)) for line in out.splitlines()]
    assert len(traces) == 2000
    assert set(traces) <= set(veilog.Model.load(model).columns)
    shares = Counter(traces)
    expected = veilog.Model.load(model).sample(20_000, seed=9)
    for sequence, count in expected.to_dict().items():
        assert shares[sequence] / 2000 == pytest.approx(count / 20_000, abs=0.06)


@pytest.mark.nightly
def test_a_stream_ends_quietly_when_its_reader_goes(model: Path) -> None:
    command = [sys.executable, "-m", "veilog", "sample", str(model), "--stream"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert isinstance(json.loads(process.stdout.readline()), list)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


@pytest.mark.nightly
@pytest.mark.usefixtures("interruptible")
def test_a_stream_ends_quietly_on_ctrl_c(model: Path) -> None:
    command = [sys.executable, "-m", "veilog", "sample", str(model), "--stream"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.slow
def test_a_stream_and_a_file_exclude_each_other(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    refused(capsys, "sample", model)
    refused(capsys, "sample", model, tmp_path / "out.csv", "--stream")
    refused(capsys, "sample", model, "--stream", "--json", "-")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sample", "inspect"])
def test_what_is_no_model_is_one_clear_message(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "a.model"
    path.write_bytes(model.read_bytes()[:-5])
    more = [] if command == "inspect" else [tmp_path / "out.csv"]
    assert "a.model" in refused(capsys, command, path, *more)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        ["--method", "travas"],
        ["-p", "configuration=bpic13-1-1e-6"],
        ["--unit", "Patient"],
    ],
    ids=" ".join,
)
def test_senseless_requests_for_a_training_are_refused(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, wrong: list[str]
) -> None:
    refused(capsys, "train", log, tmp_path / "m", *LEARN, *wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_nothing_that_is_read_is_written_over(
    capsys: pytest.CaptureFixture[str], log: Path, model: Path, tmp_path: Path
) -> None:
    before = log.read_bytes(), model.read_bytes()
    refused(capsys, "train", log, log, *LEARN)
    refused(capsys, "train", log, tmp_path / "m", *LEARN, "--checkpoint", log)
    refused(capsys, "train", log, tmp_path / "m", *LEARN, "--checkpoint", tmp_path / "m")
    refused(capsys, "sample", model, model)
    assert (log.read_bytes(), model.read_bytes()) == before


def test_a_checkpoint_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("step 3")
    assert "run" in refused(capsys, "train", log, tmp_path / "m", *LEARN, "--checkpoint", tmp_path / "run")
    assert (tmp_path / "run").read_text() == "step 3"


DEEP = ["--epsilon", "2", "--delta", "1e-3", "--no-ledger", "-p", "critic=deep", "-p", "critic_steps=20"]
DEEP += ["-p", "critic_rate=1", "-p", "free_generator_steps=1"]


def steps_that(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> list[int]:
    """Count the critic's noised steps; before each, ``act`` gets its number."""
    taken: list[int] = []
    step = travag_certified.critic_step

    def counted(*arguments: Any, **more: Any) -> None:
        act(len(taken))
        step(*arguments, **more)
        taken.append(1)

    monkeypatch.setattr(travag_certified, "critic_step", counted)
    return taken


@pytest.mark.nightly
def test_a_stopped_training_goes_on_without_spending_twice(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ["train", log, tmp_path / "m", *DEEP, "--checkpoint", tmp_path / "run"]
    taken = steps_that(monkeypatch, lambda step: signal.raise_signal(signal.SIGINT) if step == 7 else None)
    status, _, err = run(capsys, *train)
    assert status == 130
    assert sentence("run-kept", checkpoint=tmp_path / "run") in err
    assert "Traceback" not in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run.key"]
    assert len(taken) == 8  # the step under way was finished
    error = error_of(capsys, *(3 if a == "2" else a for a in train))
    assert error["code"] == "checkpoint-setting-differs" and error["problem"].endswith(" epsilon = 2, not 3.")
    facts = as_json(capsys, *train)
    assert len(taken) == 20
    guarantee = facts["guarantee"]
    assert (guarantee["status"], guarantee["epsilon"], guarantee["delta"]) == ("proven", 2.0, 0.001)
    assert [charge["question"] for charge in guarantee["charges"]] == ["count", "partitions", "gradients"]
    assert "one-run" in [c["code"] for c in guarantee["conditions"]]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


class Killed(BaseException):
    """An exception that no handler catches."""


@pytest.mark.nightly
def test_a_killed_training_does_not_take_its_steps_again(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(step: int) -> None:
        if step == 7:
            raise Killed

    train = ["train", str(log), str(tmp_path / "m"), *DEEP, "--checkpoint", str(tmp_path / "run")]
    taken = steps_that(monkeypatch, kill)
    with pytest.raises(Killed):
        main(train)
    before = len(taken)
    monkeypatch.undo()
    taken = steps_that(monkeypatch, lambda step: None)
    assert main(train) == 0
    assert 18 <= before + len(taken) <= 20
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


@pytest.mark.nightly
def test_a_complete_training_is_not_lost_before_its_model_is_saved(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = veilog.read_variants(log)
    arguments = {"critic": "deep", "critic_steps": 20, "critic_rate": 1, "free_generator_steps": 1}
    taken = steps_that(monkeypatch, lambda step: None)
    first = veilog.train(original, epsilon=2, delta="1e-3", checkpoint=tmp_path / "run", **arguments)
    second = veilog.train(original, epsilon=2, delta="1e-3", checkpoint=tmp_path / "run", **arguments)
    assert len(taken) == 20
    assert first.guarantee.to_json() == second.guarantee.to_json()
    for name, array in first.trained.weights.items():
        assert np.array_equal(second.trained.weights[name], array)


@pytest.mark.nightly
def test_a_training_is_entered_once_in_the_ledger_of_its_log(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "account"
    train = ["train", log, tmp_path / "m", *DEEP, "--checkpoint", tmp_path / "run", "--ledger", ledger]
    train.remove("--no-ledger")
    steps_that(monkeypatch, lambda step: signal.raise_signal(signal.SIGINT) if step == 7 else None)
    assert run(capsys, *train)[0] == 130
    entries = [entry for account in veilog.Ledger.open(ledger).show() for entry in account.entries]
    assert [(entry.state, entry.epsilon) for entry in entries] == [("reserved", 2)]
    facts = as_json(capsys, *train)
    entries = [entry for account in veilog.Ledger.open(ledger).show() for entry in account.entries]
    assert [(entry.state, entry.epsilon) for entry in entries] == [("written", 2)]
    assert facts["owner_only"]["account"]


@pytest.mark.nightly
def test_a_training_as_published_stays_without_guarantee(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training as published has no guarantee, also resumed, and in its drawn logs."""
    name = "sepsis-1-1e-6"
    short = replace(travag.PUBLISHED[name], autoencoder_steps=6, critic_steps=15, latent=8, noise=8)
    monkeypatch.setitem(travag.PUBLISHED, name, short)
    train = ["train", log, tmp_path / "m", "--epsilon", "1", "--delta", "1e-6", "--as-published", "--no-ledger"]
    train += ["-p", f"configuration={name}", "--checkpoint", tmp_path / "run"]
    step = travag_published.critic_step
    stopped: list[int] = []

    def stopping(*arguments: Any, **more: Any) -> None:
        stopped.append(1)
        if len(stopped) == 4:
            signal.raise_signal(signal.SIGINT)
        step(*arguments, **more)

    monkeypatch.setattr(travag_published, "critic_step", stopping)
    assert run(capsys, *train)[0] == 130
    facts = as_json(capsys, *train)
    assert len(stopped) == 15
    guarantee = facts["guarantee"]
    assert (guarantee["status"], guarantee["epsilon"], guarantee["nominal_epsilon"]) == ("none", None, 1.0)
    assert any("raw variants" in reason for reason in guarantee["reasons"])
    assert len(set(guarantee["reasons"])) == len(guarantee["reasons"])
    assert len(facts["remarks"]) == 1
    assert run(capsys, "sample", tmp_path / "m", tmp_path / "out.xes", "--cases", 5)[0] == 0
    assert '<string key="privacy:status" value="none"/>' in (tmp_path / "out.xes").read_text()
