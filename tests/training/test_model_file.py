"""A model file gives the model or an error in words, whatever its bytes."""

import dataclasses
import json
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import model
from refusals import refused

import veilog
from veilog import InputError, OutputError, ParameterError, Variants, modelfile
from veilog._plain import to_plain
from veilog.errors import VeilogError
from veilog.modelfile import Content, Damaged
from veilog.privacy.curator import Curator
from veilog.report.release_facts import facts_of_file
from veilog.training import Model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.model"
    model().save(found)
    return found


def same(one: Model, other: Model) -> bool:
    first, second = one.trained.weights, other.trained.weights
    return (
        (one.method, one.as_published, dict(one.parameters), one.remarks, one.software)
        == (other.method, other.as_published, dict(other.parameters), other.remarks, other.software)
        and to_plain(one.guarantee) == to_plain(other.guarantee)
        and list(one.columns) == list(other.columns)
        and (one.trained.configuration, one.trained.cases) == (other.trained.configuration, other.trained.cases)
        and first.keys() == second.keys()
        and all(np.array_equal(first[name], second[name]) for name in first)
    )


def test_a_model_comes_back_as_it_was(path: Path) -> None:
    assert same(Model.load(path), model())


def test_equal_models_give_equal_bytes(path: Path, tmp_path: Path) -> None:
    Model.load(path).save(tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == path.read_bytes()


def test_the_file_holds_no_more_than_it_says(path: Path) -> None:
    content = modelfile.read(path, "model")
    facts = {"method", "as_published", "parameters", "guarantee", "remarks", "software", "trained"}
    assert content.facts.keys() == facts
    assert content.facts["trained"].keys() == {"configuration", "cases", "activities"}
    assert {name.split(".")[0] for name in content.arrays} == {"columns", "weights"}
    assert {name.split(".")[1] for name in content.arrays} == {"codes", "offsets", "generator", "decoder"}


def test_the_layout_is_that_of_safetensors(path: Path) -> None:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert (8 + length) % 8 == 0
    assert all(isinstance(text, str) for text in header.pop("__metadata__").values())
    weights = model().trained.weights
    entry = header["weights.decoder.0.weight"]
    start, end = (8 + length + place for place in entry["data_offsets"])
    found = np.frombuffer(data[start:end], "<f4").reshape(entry["shape"])
    assert entry["dtype"] == "F32"
    assert np.array_equal(found, weights["decoder.0.weight"])


@pytest.mark.nightly
def test_changed_bytes_and_cuts_are_noticed(path: Path) -> None:
    data = path.read_bytes()
    for place in [*range(64), *range(64, len(data), 7)]:
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"a\.model: "):
            Model.load(path)
    for length in range(0, len(data), 41):
        path.write_bytes(data[:length])
        with pytest.raises(InputError):
            Model.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(InputError):
        Model.load(path)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello" * 100),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"weights": [1, 2, 3]})),
    "npz": lambda path: np.savez(f"{path}.npz", w=np.ones(3)) or Path(f"{path}.npz").rename(path),
    "zip": lambda path: zipfile.ZipFile(path, "w").writestr("../../evil", "x"),
    "header of 16 EiB": lambda path: path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:]),
    "nested": lambda path: path.write_bytes(_framed('{"__metadata__":{"veilog.facts":' + "[" * 10**6)),
    "another safetensors": lambda path: path.write_bytes(_framed('{"__metadata__":{"format":"pt"}}')),
    "directory": lambda path: (path.unlink(), path.mkdir()),
    "missing": lambda path: path.unlink(),
}


def _framed(header: str) -> bytes:
    text = header.encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("kind", sorted(FOREIGN))
def test_what_is_no_model_is_refused_in_words(path: Path, kind: str) -> None:
    FOREIGN[kind](path)
    with pytest.raises(InputError) as caught:
        Model.load(path)
    assert "a.model" in str(caught.value)


def test_a_newer_format_says_so(path: Path) -> None:
    data = path.read_bytes().replace(b'"veilog.version":"1"', b'"veilog.version":"2"')
    path.write_bytes(data)
    with refused(InputError, "model-file-too-new"):
        Model.load(path)


def test_a_checkpoint_is_not_a_model(path: Path) -> None:
    content = modelfile.read(path, "model")
    modelfile.write(Content("checkpoint", content.facts, content.arrays), path)
    with refused(InputError, "model-file-of-other-kind"):
        Model.load(path)


def changed(facts: dict[str, Any], *place: str | int, to: Any) -> None:
    target: Any = facts
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = to


FORGED: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "no method": lambda f, a: f.pop("method"),
    "another fact": lambda f, a: f.update(log="raw"),
    "a guarantee of another kind": lambda f, a: changed(f, "guarantee", "status", to="certain"),
    "a guarantee with text for numbers": lambda f, a: changed(f, "guarantee", "epsilon", to="0.1"),
    "a charge with a fraction by zero": lambda f, a: changed(f, "guarantee", "charges", 0, "epsilon", to="1/0"),
    "a charge with a huge fraction": lambda f, a: changed(f, "guarantee", "charges", 0, "epsilon", to="9" * 10**5),
    "text that steers the terminal": lambda f, a: f.update(remarks=["\x1b[2J"]),
    "remarks that are no list": lambda f, a: f.update(remarks="abc"),
    "parameters within parameters": lambda f, a: f.update(parameters={"a": {"b": 1}}),
    "an activity twice": lambda f, a: changed(f, "trained", "activities", 0, to="b"),
    "activities that are no text": lambda f, a: changed(f, "trained", "activities", 0, to=7),
    "an activity less": lambda f, a: f["trained"]["activities"].pop(),
    "no cases": lambda f, a: changed(f, "trained", "cases", to=None),
    "endless cases": lambda f, a: changed(f, "trained", "cases", to=10**30),
    "a huge network": lambda f, a: changed(f, "trained", "configuration", "latent", to=10**9),
    "no network": lambda f, a: changed(f, "trained", "configuration", "noise", to=-1),
    "another network": lambda f, a: changed(f, "trained", "configuration", "latent", to=4),
    "a configuration with a hole": lambda f, a: f["trained"]["configuration"].pop("noise"),
    "no offsets": lambda f, a: a.pop("columns.offsets"),
    "offsets that go back": lambda f, a: a.update({"columns.offsets": a["columns.offsets"][::-1].copy()}),
    "offsets of another type": lambda f, a: a.update({"columns.offsets": a["columns.offsets"].astype("i4")}),
    "codes without a name": lambda f, a: a.update({"columns.codes": a["columns.codes"] + 90}),
    "codes below zero": lambda f, a: a.update({"columns.codes": a["columns.codes"] - 1}),
    "no columns": lambda f, a: a.update({"columns.offsets": np.zeros(1, "i8"), "columns.codes": np.zeros(0, "i4")}),
    "weights of whole numbers": lambda f, a: a.update({"weights.decoder.0.bias": np.ones(3, "i8")}),
    "weights missing": lambda f, a: a.pop("weights.decoder.0.bias"),
    "weights of another shape": lambda f, a: a.update({"weights.decoder.0.bias": np.ones((3, 1), "f4")}),
    "weights of a network too many": lambda f, a: a.update({"weights.critic.0.bias": np.ones(1, "f4")}),
    "an array too many": lambda f, a: a.update(raw=np.ones(1, "i8")),
}


@pytest.mark.slow
@pytest.mark.parametrize("lie", sorted(FORGED))
def test_a_forged_file_with_a_right_checksum_is_refused(path: Path, lie: str) -> None:
    content = modelfile.read(path, "model")
    facts, arrays = json.loads(json.dumps(content.facts)), dict(content.arrays)
    FORGED[lie](facts, arrays)
    modelfile.write(Content("model", facts, arrays), path)
    with refused(InputError, "model-contents-inconsistent"):
        Model.load(path)


@pytest.mark.nightly
def test_random_changes_of_facts_give_a_model_or_words(path: Path) -> None:
    """Random changes of facts give an error of ours, or a model that can be drawn."""
    content = modelfile.read(path, "model")
    rng = random.Random(1)
    others: list[Any] = [None, True, -1, 0, 10**25, 1e300, "", "\x00", [], {}, "1/3", [[]], -0.0]
    for _ in range(400):
        facts = json.loads(json.dumps(content.facts))
        target: Any = facts
        while True:
            step = rng.choice(sorted(target)) if isinstance(target, dict) else rng.randrange(len(target))
            below = target[step]
            if not (isinstance(below, dict | list) and below) or rng.random() < 0.1:
                target[step] = rng.choice(others)
                break
            target = below
        modelfile.write(Content("model", facts, content.arrays), path)
        try:
            loaded = Model.load(path)
        except InputError:
            continue
        assert loaded.sample(10, seed=1).cases == 10


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_neither_written_nor_read(tmp_path: Path, number: float) -> None:
    array = np.array([1.0, 2.0, number], np.float32)
    with refused(Damaged, "model-array-not-finite"):
        modelfile.write(Content("model", {}, {"w": array}), tmp_path / "x")
    finite = modelfile.encoded(Content("model", {}, {"w": np.array([1.0, 2.0, 3.0], np.float32)}))
    assert not (tmp_path / "x").exists()
    (tmp_path / "x").write_bytes(finite[:-4] + array[2:].tobytes())
    with pytest.raises(InputError):
        modelfile.read(tmp_path / "x", "model")


def test_a_model_that_is_there_is_not_replaced_unless_it_may_go(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(OutputError):
        model(2).save(path)
    assert path.read_bytes() == before
    model(2).save(path, overwrite=True)
    assert path.read_bytes() != before


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with refused(OutputError, "file-not-writable"):
        model(2).save(path, overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["a.model"]


def test_a_model_draws_without_anything_but_its_file(path: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(path, moved / "m")
    drawn = Model.load(moved / "m").sample(1000, seed=3)
    assert drawn.cases == 1000
    assert set(drawn.to_dict()) <= set(model().columns)


@pytest.mark.slow
def test_more_than_a_million_cases_keep_the_shares_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.training._FRESH", 20_000)
    first, many = model().sample(20_000, seed=1), model().sample(10**12, seed=1)
    assert many.cases == 10**12
    assert np.allclose(many.counts / many.cases, first.counts / first.cases, atol=1e-4)
    drawn = np.bincount(np.concatenate(list(model().draws(300_000, seed=1))), minlength=4)
    assert drawn.sum() == 300_000
    assert np.allclose(drawn / 300_000, first.counts / first.cases, atol=0.02)


@pytest.mark.nightly
def test_a_release_from_a_model_carries_its_guarantee(tmp_path: Path) -> None:
    released = model().release(50, seed=1)
    assert released.guarantee == model().guarantee
    assert released.variants == model().sample(50, seed=1)
    released.save(tmp_path / "out.xes")
    assert veilog.read(tmp_path / "out.xes").variants == released.variants
    [operation] = released.operations
    assert (operation.epsilon, operation.delta) == (model().guarantee.epsilon, model().guarantee.delta)
    with refused(ParameterError, "model-release-events-too-many", cases=10**9):
        model().release(10**9)


@pytest.mark.parametrize("cases", [1, 5, 50, 1_050])
def test_the_level_of_what_is_drawn_is_that_of_the_training(cases: int, tmp_path: Path) -> None:
    """The level of drawn cases is that of the training, whatever their number."""
    proven = Curator(Variants.from_dict({("a",): 3}))
    proven.count("1")
    own = dataclasses.replace(proven.guarantee(), delta=1e-3)
    trained = dataclasses.replace(model(), guarantee=own)
    released = trained.release(cases, seed=1)
    assert (
        (released.guarantee.strength, released.guarantee.holds_up_to) == (own.strength, own.holds_up_to) == ("good", 10)
    )
    released.save(tmp_path / "out.xes")
    told = facts_of_file(veilog.read(tmp_path / "out.xes"))
    assert (told.guarantee.strength, told.guarantee.holds_up_to) == ("good", 10)


def test_the_stream_in_python_has_no_end() -> None:
    traces = model().traces(seed=1)
    assert {next(traces) for _ in range(3000)} <= set(model().columns)


@pytest.mark.parametrize("number", [0, -1, 10**12 + 1, True, 2.0, "5"])
def test_a_senseless_number_of_cases_is_refused(number: Any) -> None:
    with refused(ParameterError, "model-cases-out-of-range"):
        model().sample(number)


def test_every_error_is_of_the_family() -> None:
    assert issubclass(Damaged, VeilogError)
