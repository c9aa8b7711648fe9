"""Cases drawn by a release's noisy answers: their model, its content, refusals."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import code_of, run
from refusals import refused
from ruled import ATTRIBUTES, DECLARED, RULES, breaking, ruled_hospital

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import START, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.similarity import relative_log_similarity
from veilog.modelfile import Content, write
from veilog.privacy.mechanisms import noise
from veilog.releasing import answers, model
from veilog.releasing.answers import WORDS, AnswerRecorder, numbers_in, watch
from veilog.releasing.model import KIND, MOST_FLOWS, ReleaseModel
from veilog.releasing.request import ReleaseRequest, plan
from veilog.releasing.run import curator_of, make_by_method
from veilog.testing.methods import Log, Tape

LOG = ruled_hospital(150, seed=1)
WHOLE: dict[str, Any] = {"times": 0.3, "attributes": ATTRIBUTES, "attributes_share": 0.3}
KEPT: dict[str, dict[str, Any]] = {
    "evolve": {},
    "laplace": {},
    "sacofa": {},
    "df-laplace": {},
    "sapa": {},
    "dpim": {},
    "travas": {"delta": 0.01},
    "utravas": {"delta": 0.01},
}
"""Methods of which more cases can be drawn, with what they need."""
CASES: dict[str, dict[str, Any]] = {
    **{method: {"method": method, **more} for method, more in KEPT.items()},
    "whole": {"method": "evolve", **WHOLE},
    "whole-gaussian": {"method": "evolve", "delta": 0.01, **WHOLE},
    "travas-whole": {"method": "travas", "delta": 0.01, **WHOLE},
    "rules": {"method": "evolve", "rules": RULES, **WHOLE},
    "prior": {"method": "evolve", "prior": hospital(300, seed=2).variants},
    "prior-tree": {"method": "laplace", "prior": hospital(300, seed=2).variants},
    "real": {"method": "evolve", "delta": 0.01, "only_real": True},
    "person": {"method": "evolve", "unit": "ward", "max_cases": 30},
    "subset": {"method": "evolve", "subset": "ward=Surgery"},
}


def released(method: str = "evolve", **more: Any) -> veilog.Release:
    given = {"epsilon": 3, "domain": DECLARED, "ledger": False, "allow_no_protection": True}
    return veilog.release(LOG, method, **given | more)


def equal(one: EventLog, other: EventLog) -> bool:
    return one.events.equals(other.events) and one.cases.equals(other.cases)


# What is drawn ------------------------------------------------------------------------------------------------------


@pytest.mark.slow(but=4)
@pytest.mark.parametrize("case", CASES)
def test_a_model_in_a_file_draws_what_the_release_does(case: str, tmp_path: Path) -> None:
    made = released(**CASES[case])
    made.model.save(tmp_path / "release.model")
    loaded = ReleaseModel.load(tmp_path / "release.model")
    for cases in (1, 40, 3 * made.variants.cases):
        sample = loaded.sample(cases, seed=1)
        assert sample.number_of_cases == cases
        assert equal(sample, made.sample(cases, seed=1))
    assert loaded.guarantee.to_json() == made.guarantee.to_json()
    assert {*sample.events.column_names} == {*made.log.events.column_names}
    assert {*sample.cases.column_names} == {*made.log.cases.column_names}


def test_cases_are_drawn_afresh_by_the_same_answers() -> None:
    log = hospital(800, seed=1)
    made = veilog.release(log, "evolve", epsilon=1, activities="log", delta="1e-4", seed=1, ledger=False)
    first, second = made.sample(seed=1).variants, made.sample(seed=2).variants
    assert first.cases == second.cases == made.variants.cases
    assert len({first.sequences[i] for i in range(len(first))} - {*made.variants.to_dict()}) > 0
    assert first != second
    whole = relative_log_similarity(log.variants, made.variants).value
    for one in (first, second):
        assert relative_log_similarity(log.variants, one).value == pytest.approx(whole, abs=0.03)


def test_of_many_cases_variants_repeat_in_their_shares() -> None:
    made = released(seed=1)
    sample = made.sample(MOST_FLOWS * made.variants.cases * 3, seed=1)
    assert relative_log_similarity(made.variants, sample.variants).value > 0.8


def test_times_and_attributes_are_those_of_the_release() -> None:
    log = hospital(1500, seed=2)
    made = veilog.release(
        log, "evolve", epsilon=2, activities="log", times=0.3, window="2024-01-01..2025-01-01",
        attributes=["age group"], delta="1e-4", seed=1, ledger=False,
    )  # fmt: skip
    sample = made.sample(1500, seed=1)

    def medians(one: EventLog) -> tuple[float, float]:
        times = one.events.column("time:timestamp").cast("int64").to_numpy()
        took = times[one.offsets[1:] - 1] - times[one.offsets[:-1]]
        return float(np.median(took)), float(took.mean())

    assert medians(sample) == pytest.approx(medians(made.log), rel=0.15)
    shares = [Counter(one.cases.column("age group").to_pylist()) for one in (made.log, sample)]
    for value, number in shares[0].items():
        assert shares[1][value] / 1500 == pytest.approx(number / made.variants.cases, abs=0.03)


def test_starts_of_events_are_drawn_too() -> None:
    log = hospital(300, seed=2)
    begun = log.events.column("time:timestamp")
    log = replace(log, events=log.events.append_column(START, begun))
    made = veilog.release(
        log, "evolve", epsilon=3, activities="log", times=0.4, processing=True, seed=1, ledger=False
    )  # fmt: skip
    assert START in made.sample(100, seed=1).events.column_names


# Given values -------------------------------------------------------------------------------------------------------


def test_where_gives_cases_with_these_values_alone() -> None:
    made = released(seed=1, **WHOLE)
    sample = made.sample(60, where={"ward": "Surgery"}, seed=1)
    assert sample.number_of_cases == 60
    assert sample.cases.column("ward").to_pylist() == ["Surgery"] * 60
    assert sample.cases.column("concept:name").to_pylist() == [str(i + 1) for i in range(60)]
    assert len(sample.variants) > 1
    both = made.sample(3, where={"ward": "Surgery", "case:age": sample.cases.column("age")[0].as_py()}, seed=1)
    assert both.cases.column("ward").to_pylist() == ["Surgery"] * 3
    times = sample.events.column("time:timestamp").cast("int64").to_numpy()
    assert (np.diff(times)[np.diff(_owners(sample)) == 0] >= 0).all()


def _owners(log: EventLog) -> Any:
    return np.repeat(np.arange(log.number_of_cases), np.diff(log.offsets))


def test_where_refuses_other_attributes_and_values_that_do_not_come() -> None:
    made = released(seed=1, **WHOLE)
    with refused(ParameterError, "sample-attribute-missing", name="diagnosis"):
        made.sample(5, where={"diagnosis": "flu"})
    with refused(ParameterError, "sample-attribute-missing", names="none"):
        released(seed=1).sample(5, where={"ward": "Surgery"})
    with refused(ParameterError, "sample-values-rare", cases=0):
        made.sample(5, where={"ward": "Dermatology"})


@pytest.mark.parametrize("cases", [0, -1, True, 2.5, 10**12])
def test_a_number_of_cases_is_a_whole_one(cases: Any) -> None:
    with refused(ParameterError, "model-cases-out-of-range"):
        released(seed=1).sample(cases)


# Rules and priors ---------------------------------------------------------------------------------------------------


def check_rules(method: str, releases: int, samples: int) -> None:
    for seed in range(releases):
        made = released(method, seed=seed, rules=RULES, **WHOLE, **KEPT[method])
        for draw in range(samples):
            assert breaking(made.sample(150, seed=draw)) == 0, (seed, draw)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("method", KEPT)
def test_no_drawn_case_breaks_a_rule(method: str) -> None:
    check_rules(method, 1, 2)


@pytest.mark.nightly
def test_of_a_hundred_releases_no_sample_breaks_a_rule() -> None:
    check_rules("evolve", 100, 10)


# What a model holds -------------------------------------------------------------------------------------------------


def recorded(request: ReleaseRequest, log: Log, tape: Tape) -> AnswerRecorder:
    curator = curator_of(request.seeded(1), log)
    curator._randomness = noise.seeded(1)
    recorder = AnswerRecorder(watch(curator, tape))
    make_by_method(recorder.curator, request)
    return recorder


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("case", [name for name in CASES if name not in ("prior", "prior-tree", "person")])
def test_a_record_depends_on_the_log_by_its_answers_alone(case: str) -> None:
    """White box: a log of others with the same answers gives the same record."""
    given = {"epsilon": 3, "domain": DECLARED, "allow_no_protection": True} | CASES[case]
    request, other = plan(given.pop("method"), **given), ruled_hospital(90, seed=5)
    tape = Tape(LOG, other, request.public)
    first = recorded(request, LOG, tape).record
    tape.position, tape.domain = 0, request.public
    second = recorded(request, other, tape).record
    assert first is not None
    assert second is not None
    assert model._encode_record(first)[0] == model._encode_record(second)[0]
    assert np.array_equal(model._encode_record(first)[1]["answers"], model._encode_record(second)[1]["answers"])
    assert first.facts == second.facts


@pytest.mark.slow(but=3)
@pytest.mark.parametrize("case", CASES)
def test_a_file_holds_charged_answers_and_nothing_else(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """White box: a file holds random words and charged answers, and nothing else."""
    asked: list[int] = []
    question = AnswerRecorder.question

    def noted(self: AnswerRecorder, holder: Any, name: str, given: Any, named: Any) -> Any:
        account = getattr(holder, "_account", None)
        before = 0 if account is None else len(account.charges)
        answer = question(self, holder, name, given, named)
        charged = account is None or len(account.charges) == before + 1  # rounds were charged when they were opened
        assert charged, name
        asked.append(numbers_in(answer))
        return answer

    monkeypatch.setattr(AnswerRecorder, "question", noted)
    made = released(**CASES[case])
    assert made.recording is not None
    record = made.recording.record
    assert [numbers_in(answer) for name, answer in record.entries if name != WORDS] == asked
    content = ReleaseModel.of(made)._content()
    extra = {"prior"} if made.recording.request.prior is not None else set()
    assert {*content.facts} - {"window"} == {"release", "request", "public", "entries"} | extra
    assert {*content.arrays} - {"prior codes", "prior offsets", "prior counts"} == {"answers"}
    assert {*content.facts["release"]} == set(made.model.facts.__dataclass_fields__)
    for owner_only in ("losses", "findings", "seconds", "notes"):
        assert owner_only not in content.facts["release"]
    known = {"activities", "max_length", "window"}
    assert all(name in known or name.split()[0] in ("level", "kind") for name in content.facts["public"])


def test_no_noise_is_drawn_from_recorded_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each random word is used once: by the method, which records it, or as noise."""
    handed: list[tuple[int, ...]] = []

    def operating_system() -> noise.Randomness:
        source = np.random.default_rng(1)

        def words(number: int) -> Any:
            found = source.integers(2**32, size=number, dtype=np.uint32)
            handed.append(tuple(found.tolist()))
            return found

        return noise.Randomness(words, None)

    drawn: list[tuple[int, ...]] = []
    monkeypatch.setattr("veilog.releasing.run.noise.operating_system", operating_system)
    kept = AnswerRecorder._words

    def method_words(self: AnswerRecorder, number: int) -> Any:
        found = kept(self, number)
        drawn.append(tuple(found.tolist()))
        return found

    monkeypatch.setattr(AnswerRecorder, "_words", method_words)
    made = released(delta=0.01, **WHOLE)
    assert made.recording is not None
    words = [tuple(answer.tolist()) for name, answer in made.recording.record.entries if name == WORDS]  # type: ignore[union-attr]
    assert words == drawn
    assert 0 < len(drawn) < len(handed)
    for_noise = Counter(handed)
    for one in drawn:
        for_noise[one] -= 1
    assert min(for_noise.values()) == 0
    mechanisms = {word for one, times in for_noise.items() if times for word in one}
    assert not mechanisms & {word for one in drawn for word in one}


def test_what_is_not_recorded_has_no_model() -> None:
    for name, delta in (("sapa", 0), ("travas", 0.01), ("libra", 0.01)):
        peeking = veilog.release(LOG, name, epsilon=1, delta=delta, as_published=True, ledger=False)
        assert peeking.recording is None
        with refused(ParameterError, "release-model-missing"):
            peeking.sample(5)
    trained = released("travag", delta=0.01, critic_steps=3, free_generator_steps=5)
    with refused(ParameterError, "release-model-missing"):
        trained.sample(5)
    both = released(for_="both", seed=1)
    assert both.sample(5, seed=1).number_of_cases == 5
    with refused(ParameterError, "release-model-missing"):
        both.beside["models"].sample(5)


def test_nothing_is_kept_of_a_large_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_NUMBERS", 5)
    assert released().recording is None


def test_a_seed_or_times_of_a_prior_are_in_no_file(tmp_path: Path) -> None:
    with refused(ParameterError, "release-model-with-seed"):
        released(seed=1).model.save(tmp_path / "seeded.model")
    timed = released(times=0.3, prior=hospital(300, seed=2))
    assert timed.sample(20, seed=1).number_of_cases == 20
    with refused(ParameterError, "release-model-with-prior-times"):
        timed.save(tmp_path / "out.xes", model=tmp_path / "timed.model")
    assert list(tmp_path.iterdir()) == []


def test_a_sample_says_of_which_release_it_is() -> None:
    made = released()
    sample = made.model.release(20)
    assert sample.guarantee == made.guarantee
    digest = made.model.facts.digest
    (said,) = [one for one in sample.remarks_for_all if one.code == "sample-of-release"]
    assert said.values["digest"] == digest
    assert digest in json.dumps([str(child.value) for one in sample.log.metadata.attributes for child in one.children])


def test_what_a_sample_costs_is_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    made = veilog.release(LOG, "evolve", epsilon=1, domain=DECLARED, ledger=ledger)
    before = ledger.read_bytes()
    made.sample(30)
    made.model.save(tmp_path / "release.model")
    ReleaseModel.load(tmp_path / "release.model").release(30).save(tmp_path / "sample.xes")
    assert ledger.read_bytes() == before


def test_another_version_is_noticed(tmp_path: Path) -> None:
    """A model of another version is refused, because its answers would not fit."""
    made = released()
    found = made.model
    found.facts = replace(found.facts, digest="0" * 16)  # type: ignore[attr-defined]
    with refused(ParameterError, "release-model-of-other-version"):
        found.release(5)
    shorter = ReleaseModel.of(made)
    shorter.recording.record.entries.pop()
    with refused(ParameterError, "release-model-of-other-version"):
        shorter.release(5)


def test_a_file_that_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    content = ReleaseModel.of(released())._content()
    for facts in (
        {**content.facts, "entries": [*content.facts["entries"][:-1], ["count", "array", [10**9], []]]},
        {**content.facts, "entries": [["count"]]},
        {**content.facts, "entries": [["count", "nothing", [], []]]},
        {**content.facts, "request": {"method": "nothing"}},
        {**content.facts, "release": {}},
        {},
    ):
        write(Content(KIND, facts, content.arrays), tmp_path / "other.model")
        with pytest.raises((InputError, ParameterError)):
            ReleaseModel.load(tmp_path / "other.model")
    write(Content("other", {}, {}), tmp_path / "other.model")
    with refused(InputError, "model-file-of-other-kind"):
        ReleaseModel.load(tmp_path / "other.model")


# The command --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release and its model; the log is gone."""
    place = tmp_path_factory.mktemp("models")
    log = place / "log.parquet"
    veilog.write(LOG, log)
    given = ["--epsilon", "2", "--activities", "log", "--times", "0.3", "--attributes", "ward", "--no-ledger"]
    given += ["--domain", "ward=Pediatrics|Surgery|Medicine", "--method", "evolve", "--no-compare"]
    from veilog.cli import main

    assert main(["release", str(log), str(place / "out.xes"), *given, "--model", str(place / "out.model")]) in (0, 6)
    log.unlink()
    return place


def test_the_command_draws_where_no_log_is(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "drawn.xes"
    words = ["sample", str(folder / "out.model"), str(target), "--cases", "30", "--where", "ward=Surgery"]
    done = subprocess.run([sys.executable, "-m", "veilog", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    drawn = veilog.read(target)
    assert drawn.cases.column("ward").to_pylist() == ["Surgery"] * 30
    assert "sample-of-release" in target.read_text()


def test_the_command_describes_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "inspect", folder / "out.model", "--json", "-")
    told = json.loads(out)
    assert status == 0
    assert told["method"] == "evolve"
    assert told["guarantee"]["epsilon"] == 2.0
    assert run(capsys, "inspect", folder / "out.model")[0] == 0


def test_the_command_refuses(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, out = folder / "out.model", tmp_path / "out.xes"
    assert code_of(capsys, "sample", place, out, "--where", "ward=Surgery", "--where", "ward=Medicine")[0] == 2
    assert code_of(capsys, "sample", place, out, "--where", "color=red")[1] == "sample-attribute-missing"
    assert code_of(capsys, "sample", place, out, "--where", "ward=Moon")[1] == "sample-values-rare"
    status, _, err = run(capsys, "sample", place, "--stream")
    assert status == 2
    assert err.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_is_refused_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.parquet"
    veilog.write(LOG, log)
    given = ["release", log, tmp_path / "out.xes", "--epsilon", "1", "--activities", "log", "--no-ledger"]
    more = ["--method", "evolve", "--seed", "1", "--model", tmp_path / "out.model"]
    assert code_of(capsys, *given, *more)[1] == "release-model-with-seed"
    more = ["--method", "travag", "--delta", "0.01", "--model", tmp_path / "out.model"]
    assert code_of(capsys, *given, *more)[1] == "release-model-missing"
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]
