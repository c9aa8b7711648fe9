"""A checkpoint resumes one run of one log and request, once, and loses no step."""

import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import LOG, state
from refusals import refused

import veilog
from veilog import InputError, OutputError, ParameterError, Variants, modelfile
from veilog._process import Interrupts, hold_interrupts
from veilog.errors import BudgetError, VeilogError
from veilog.ledger.ledger import Ledger, Reservation
from veilog.messages import Message
from veilog.methods.travag.model import state_from, state_to
from veilog.methods.travag.settings import TrainingState
from veilog.privacy.account.guarantee import Condition
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.gradients import Training
from veilog.training import (
    ONE_RUN,
    CheckpointFile,
    Model,
    ResumedState,
    Saver,
    claimed,
    earlier_run,
    remove,
    source,
)

REQUEST = {"method": "travag", "epsilon": "1/3", "seed": None, "parameter share": 0.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


def saver(keeper: CheckpointFile, interrupts: Interrupts | None = None, gap: int = 5) -> Saver:
    return Saver(
        keeper, interrupts or Interrupts(), Curator(LOG).guarantee, [Message("remark")], ResumedState(), gap=gap
    )


def started(path: Path, steps: tuple[int, int] = (0, 0)) -> CheckpointFile:
    keeper = CheckpointFile(path)
    assert keeper.begin(LOG, REQUEST) is None
    saver(keeper)(state(steps))
    return keeper


def resumed(path: Path, log: Variants = LOG, **changed: object) -> tuple[CheckpointFile, TrainingState]:
    keeper = CheckpointFile(path)
    before = earlier_run(keeper.begin(log, REQUEST | changed), keeper)
    assert before.state is not None
    return keeper, before.state


def test_a_state_comes_back_as_it_was() -> None:
    facts, arrays = state_to(state((3, 4)))
    again_facts, again_arrays = state_to(state_from(facts, arrays))
    assert facts == again_facts
    assert arrays.keys() == again_arrays.keys()
    assert all(np.array_equal(arrays[name], again_arrays[name]) for name in arrays)


def test_a_run_is_gone_on_with_where_it_was(path: Path) -> None:
    started(path)
    _, found = resumed(path)
    assert all(np.array_equal(found.weights[name], array) for name, array in state().weights.items())
    assert found.charges == state().charges
    assert found.plan == state().plan


@pytest.mark.slow
def test_the_file_counts_steps_before_they_are_taken(path: Path) -> None:
    """The file never counts fewer steps than a run has taken."""
    keeper = CheckpointFile(path)
    keeper.begin(LOG, REQUEST)
    save = saver(keeper, gap=5)
    writes, seen, last = 0, None, None
    for step in range(0, 396, 5):
        taken = (min(step, 100), max(0, step - 100))
        assert last is None or step <= last.step
        save(state(taken))
        mark = path.stat().st_mtime_ns, path.stat().st_ino
        if mark != seen:
            writes, seen = writes + 1, mark
            content = modelfile.read(path, "checkpoint")
            last = state_from(content.facts["state"], content.arrays)
            assert last.step > step
    assert writes < 45


def test_a_killed_run_loses_the_steps_that_were_counted(path: Path) -> None:
    started(path, (96, 0))
    _, found = resumed(path)
    assert found.taken == (100, 6)  # ten more than were taken, first of the autoencoder and then of the critic


def test_a_stopped_run_loses_nothing(path: Path) -> None:
    keeper = CheckpointFile(path)
    keeper.begin(LOG, REQUEST)
    interrupts = Interrupts()
    save = saver(keeper, interrupts)
    save(state((0, 0)))
    assert interrupts.hold
    interrupts.noted = True
    with pytest.raises(KeyboardInterrupt):
        save(state((3, 0)))
    assert resumed(path)[1].taken == (3, 0)


def test_a_complete_run_is_kept_whole(path: Path) -> None:
    keeper = started(path)
    save = saver(keeper)
    save(state((100, 300), seed=2))
    _, found = resumed(path)
    assert found.step == found.steps
    assert np.array_equal(found.weights["decoder.0.bias"], state(seed=2).weights["decoder.0.bias"])


def test_a_checkpoint_is_taken_once(path: Path) -> None:
    started(path)
    resumed(path)
    with refused(OutputError, "checkpoint-taken"):
        CheckpointFile(path)
    with refused(OutputError, "checkpoint-taken"):
        CheckpointFile(path)


def test_two_runs_cannot_take_it_at_the_same_time(path: Path) -> None:
    started(path)
    first, second = CheckpointFile(path), CheckpointFile(path)
    assert first.begin(LOG, REQUEST) is not None
    with pytest.raises(OutputError):
        second.begin(LOG, REQUEST)


def test_a_run_whose_checkpoint_was_taken_stops(path: Path) -> None:
    first = started(path)
    second, found = resumed(path)
    saver(second)(found)
    with refused(OutputError, "checkpoint-taken-or-replaced"):
        saver(first)(state((10, 0)))


def test_a_second_run_does_not_write_over_the_first(path: Path) -> None:
    late = CheckpointFile(path)
    late.begin(LOG, REQUEST)
    started(path)
    with refused(OutputError, "checkpoint-taken-or-replaced"):
        saver(late)(state())


def test_what_was_taken_for_nothing_is_given_back(path: Path) -> None:
    started(path)
    keeper, _ = resumed(path)
    keeper.give_back()
    assert resumed(path)[1].step == 10


def test_after_going_on_the_old_checkpoint_is_gone(path: Path) -> None:
    started(path)
    keeper, found = resumed(path)
    saver(keeper)(found)
    keeper.give_back()
    assert sorted(p.name for p in path.parent.iterdir()) == ["run", "run.key"]
    assert resumed(path)[1].step == 20


@pytest.mark.parametrize("name", ["epsilon", "seed", "parameter share", "something new"])
def test_another_request_is_refused_and_named(path: Path, name: str) -> None:
    started(path)
    with refused(ParameterError, "checkpoint-setting-differs", name_2=name):
        resumed(path, **{name: "2"})
    assert resumed(path)[1].step == 10


def test_another_log_is_refused(path: Path) -> None:
    started(path)
    one_more = Variants.from_dict(LOG.to_dict() | {("b",): 16})
    with refused(ParameterError, "checkpoint-of-other-log"):
        resumed(path, one_more)
    assert resumed(path)[1].step == 10


def test_the_file_says_nothing_of_the_log_without_its_key(path: Path, tmp_path: Path) -> None:
    first = started(path)
    second = started(tmp_path / "other")
    assert first.digest(LOG) != second.digest(LOG)
    assert stat.S_IMODE(first.key_path.stat().st_mode) == 0o600
    assert first.key not in path.read_bytes()


@pytest.mark.parametrize("damage", ["no key", "short key", "cut", "model", "text", "no state", "other remarks"])
def test_what_is_no_checkpoint_is_refused_in_words(path: Path, damage: str) -> None:
    keeper = started(path)
    content = modelfile.read(path, "checkpoint")
    facts = dict(content.facts)
    if damage == "no key":
        keeper.key_path.unlink()
    elif damage == "short key":
        keeper.key_path.write_bytes(b"abc")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "text":
        path.write_text("step 3")
    elif damage == "model":
        modelfile.write(replace(content, kind="model"), path)
    else:
        facts.update(state={}) if damage == "no state" else facts.update(remarks=7)
        modelfile.write(replace(content, facts=facts), path)
    with pytest.raises(InputError):
        resumed(path)
    assert not path.with_name("run.taken").exists() or damage in ("no state", "other remarks")


def test_a_stale_key_does_no_harm(path: Path) -> None:
    path.with_name("run.key").write_bytes(b"old")
    started(path)
    assert resumed(path)[1].step == 10


def test_clearing_up_leaves_nothing(path: Path) -> None:
    started(path)
    remove(path)
    assert list(path.parent.iterdir()) == []


def test_a_seeded_run_goes_on_with_fresh_noise() -> None:
    fresh, first, later = source(5, None), source(5, state((10, 0))), source(5, state((20, 0)))
    drawn = [s.words(8).tolist() for s in (fresh, first, later)]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]
    assert drawn[1] == source(5, state((10, 0))).words(8).tolist()
    assert {s.seed for s in (fresh, first, later)} == {5}
    assert drawn[0] == noise.seeded(5).words(8).tolist()


EARTH = Condition("columns-from-log", "owner", Message("The earth is round."))


def test_the_guarantee_says_that_it_is_of_one_run(path: Path) -> None:
    guarantee = Curator(LOG).guarantee()
    before = ResumedState(conditions=(EARTH,))
    assert claimed(guarantee, before, None) == guarantee
    assert claimed(guarantee, before, CheckpointFile(path)).conditions == (EARTH, ONE_RUN)
    assert claimed(guarantee, before, CheckpointFile(path), checked=True).conditions == (EARTH,)


@pytest.mark.usefixtures("interruptible")
def test_a_first_ctrl_c_waits_for_the_end_of_a_step_and_a_second_does_not() -> None:
    with hold_interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.hold = True
        signal.raise_signal(signal.SIGINT)
        assert interrupts.noted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupts.release()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_complete_run_can_be_stopped_at_any_moment(path: Path) -> None:
    keeper = started(path)
    interrupts = Interrupts()
    saver(keeper, interrupts)(state((100, 300)))
    assert not interrupts.hold


# Copies --------------------------------------------------------------------------------------------------------------

PEOPLE = Variants.from_dict({("a", "b"): 4000, ("a", "c"): 3000, ("b",): 1500})
STEPS = 12


def trained(folder: Path, name: str, **wanted: Any) -> Model:
    return veilog.train(
        PEOPLE,
        epsilon=2,
        delta="1e-3",
        critic_steps=STEPS,
        free_generator_steps=1,
        ledger=folder / "ledger",
        **{"checkpoint": folder / name, **wanted},
    )


def copied(folder: Path, name: str) -> None:
    """Copy the checkpoint and its key, as an attacker can."""
    for suffix in ("", ".key"):
        shutil.copy(folder / f"run{suffix}", folder / f"{name}{suffix}")


def during(patch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> list[int]:
    """Do something in the step of this number, and return the steps taken."""
    taken: list[int] = []
    step = Training.step

    def take(self: Training, part: int, factors: Any) -> Any:
        taken.append(len(taken) + 1)
        if len(taken) == number:
            act()
        return step(self, part, factors)

    patch.setattr(Training, "step", take)
    return taken


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a run stopped after five steps, and a copy of it."""
    with pytest.MonkeyPatch.context() as patch:
        during(patch, 5, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path, "run")
    copied(tmp_path, "copy")
    yield tmp_path


def entries(folder: Path) -> list[tuple[str, Any]]:
    return [
        (entry.state, entry.epsilon) for account in Ledger.open(folder / "ledger").show() for entry in account.entries
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_the_ledger_has_what_the_model_claims(tmp_path: Path, kept: bool) -> None:
    """The ledger has the model's claimed delta, not the smaller one of its queries."""
    model = trained(tmp_path, "run", **({} if kept else {"checkpoint": None}))
    (entry,) = Ledger.open(tmp_path / "ledger").show()[0].entries
    assert (entry.epsilon, entry.delta, entry.state) == (2, Fraction(1, 1000), "charged")
    assert (model.guarantee.epsilon, model.guarantee.delta) == (2.0, 0.001)
    assert sum(charge.delta for charge in model.guarantee.charges) < Fraction(1, 1000)
    assert entry.guarantee is not None and entry.guarantee["delta"] == 0.001


@pytest.mark.slow
def test_a_copied_checkpoint_is_not_finished_a_second_time(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied checkpoint is not finished again, so one charge gives one model."""
    model = trained(stopped, "run")
    assert model.guarantee.proven and ONE_RUN not in model.guarantee.conditions
    taken = during(monkeypatch, 0, lambda: None)
    with pytest.raises(BudgetError):
        trained(stopped, "copy")
    assert taken == [] and entries(stopped) == [("charged", 2)]


@pytest.mark.slow
def test_a_copy_is_refused_from_the_moment_on_that_another_went_on(
    stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: list[str] = []

    def another() -> None:
        with pytest.raises(BudgetError) as caught:
            trained(stopped, "copy")
        refusals.append(caught.value.code)

    during(monkeypatch, 2, another)
    assert trained(stopped, "run").guarantee.proven
    assert refusals == ["checkpoint-already-resumed"]
    assert entries(stopped) == [("charged", 2)]


@pytest.mark.slow
def test_a_run_whose_copy_goes_on_comes_to_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one of a run and its copy is charged and gives a model, even in parallel."""
    models: list[Model] = []

    def another() -> None:
        copied(tmp_path, "copy")
        models.append(trained(tmp_path, "copy"))

    during(monkeypatch, 4, another)
    with refused(BudgetError, "checkpoint-already-resumed"):
        trained(tmp_path, "run")
    assert len(models) == 1 and entries(tmp_path) == [("charged", 2)]
    with refused(BudgetError, "checkpoint-already-resumed"):
        trained(tmp_path, "run")


@pytest.mark.slow
def test_two_runs_from_copies_at_the_same_moment_are_one(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs from copies at the same moment are one: the second is refused."""
    take_over, taken = Reservation.take_over, during(monkeypatch, 0, lambda: None)
    models: list[Model] = []

    def late(self: Reservation, mark: str, *, complete: bool = False) -> Reservation:
        monkeypatch.setattr(Reservation, "take_over", take_over)
        models.append(trained(stopped, "copy"))
        assert len(taken) == STEPS - 5
        return take_over(self, mark, complete=complete)

    monkeypatch.setattr(Reservation, "take_over", late)
    with pytest.raises(VeilogError):
        trained(stopped, "run")
    assert len(models) == 1 and len(taken) == STEPS - 5 and entries(stopped) == [("charged", 2)]


@pytest.mark.slow
def test_a_crash_between_checkpoint_and_ledger_loses_nothing(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Reservation, mark: str, *, complete: bool = False) -> Reservation:
        raise SystemExit(1)

    with monkeypatch.context() as patch:
        patch.setattr(Reservation, "take_over", crash)
        with pytest.raises(SystemExit):
            trained(stopped, "run")
    assert trained(stopped, "run").guarantee.epsilon == 2
    with pytest.raises(BudgetError):
        trained(stopped, "copy")


@pytest.mark.slow
def test_a_complete_run_gives_its_model_again_and_is_charged_once(tmp_path: Path) -> None:
    first = trained(tmp_path, "run")
    second = trained(tmp_path, "run")
    assert first.guarantee.to_json() == second.guarantee.to_json() and entries(tmp_path) == [("charged", 2)]
    assert first.entry is not None
    first.save(tmp_path / "m.veilog")
    assert entries(tmp_path) == [("written", 2)]


@pytest.mark.slow
def test_without_a_ledger_the_condition_remains(tmp_path: Path) -> None:
    model = veilog.train(PEOPLE, epsilon=2, delta="1e-3", free_generator_steps=1, checkpoint=tmp_path / "run")
    assert ONE_RUN in model.guarantee.conditions
