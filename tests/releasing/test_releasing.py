"""A release holds nothing of the original but its answers."""

import datetime
import inspect
import json
from pathlib import Path

import openly
import pytest
from refusals import refused

import veilog
from veilog import Domain, Variants
from veilog.errors import OutputError, ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.request import OPTIONS

LOG = Variants.from_dict({("a", "b"): 500, ("a", "c", "c"): 300, ("a", "b", "c"): 80, ("d",): 2, (): 40})


def released(**changes: object) -> veilog.Release:
    arguments = {"epsilon": 1, "delta": "1e-3", **changes}
    return openly.release(LOG, "travas", **arguments)  # type: ignore[arg-type]


def test_the_released_log_has_the_released_variants() -> None:
    release = released()
    assert release.log.variants == release.variants
    assert release.log.cases.num_rows == release.variants.cases


def test_case_names_are_fresh_and_their_order_is_not_that_of_variants() -> None:
    log = released(seed=1).log
    names = log.cases.column("concept:name").to_pylist()
    assert names == [str(i + 1) for i in range(len(names))]
    lengths = (log.offsets[1:] - log.offsets[:-1]).tolist()
    assert lengths != sorted(lengths)


def test_artificial_times_carry_the_order_only_and_say_so() -> None:
    log = released().log
    assert {a.key: a.value for a in log.metadata.attributes}["veilog:artificial_timestamps"] is True
    first = log.events.column("time:timestamp").to_pylist()[: int(log.offsets[1])]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert first == [epoch + datetime.timedelta(hours=i) for i in range(len(first))]


def test_the_metadata_names_the_guarantee() -> None:
    (operations, _) = released(epsilon="0.5").log.metadata.attributes
    facts = {a.key: a.value for a in operations.children[0].children}
    assert operations.key == "privacy:anonymizations"
    assert (facts["privacy:epsilon"], facts["privacy:method"]) == (0.5, "travas")
    assert 6.08e-4 < facts["privacy:delta"] < 6.09e-4 and facts["privacy:nominal_delta"] == 0.001


def test_a_seeded_release_repeats_itself_and_guarantees_nothing() -> None:
    first, second = released(seed=3), released(seed=3)
    assert first.variants == second.variants
    assert first.log.events.equals(second.log.events)
    assert first.guarantee.status == "none"
    assert released(seed=4).variants != first.variants


def test_an_unseeded_release_does_not_repeat_itself() -> None:
    assert released().variants != released().variants


def test_the_json_holds_no_statistic_of_the_original() -> None:
    """The JSON of two very different logs differs in the released counts alone."""
    other = Variants.from_dict({("x",) * 9: 12_345, ("y", "z"): 777})
    first = released().to_json()
    second = openly.release(other, "travas", epsilon=1, delta="1e-3").to_json()
    for release in (first, second):
        for name in ("cases", "events", "variants", "owner_only", "remarks", "to_confirm"):
            del release[name]
        for name in ("level", "level_holds_up_to_cases", "protects"):  # judged by the released cases
            del release["guarantee"][name]  # type: ignore[attr-defined]
    assert json.dumps(first) == json.dumps(second)


def test_a_declared_domain_shapes_every_case_by_itself() -> None:
    release = released(domain=Domain.of(["a", "b", "z"], 2), seed=1)
    assert set(release.variants.to_dict()) <= {("a", "b"), ("a",), ()}


@pytest.mark.parametrize("suffix", [".xes", ".xes.gz", ".csv", ".parquet"])
def test_a_saved_release_reads_back_as_its_variants(tmp_path: Path, suffix: str) -> None:
    release = openly.release(Variants.from_dict({("a", "b"): 50, ("a",): 30}), "travas", epsilon=1, delta="0.1")
    release.save(tmp_path / f"out{suffix}")
    assert veilog.read(tmp_path / f"out{suffix}").variants == release.variants


def test_an_empty_release_is_not_written(tmp_path: Path) -> None:
    release = openly.release(Variants.from_dict({("a",): 1}), "travas", epsilon=1, delta="1e-9", seed=0)
    assert release.variants.cases == 0
    with refused(OutputError, "release-empty"):
        release.save(tmp_path / "out.xes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name, m in veilog.METHODS.items() if m.certified and not m.full_log])
def test_a_log_without_cases_is_released_like_any_other(method: str) -> None:
    """A log without cases is released like one with a case, so that none shows."""
    delta = "1e-3" if veilog.METHODS[method].needs_delta else 0
    domain = Domain.of(["a", "b"], 4)
    made = [
        openly.release(Variants.from_dict(cases), method, epsilon=1, delta=delta, domain=domain).guarantee
        for cases in ({}, {("a",): 1})
    ]
    assert made[0].proven and made[0].charges[0] == made[1].charges[0]


@pytest.mark.slow
def test_a_paid_release_with_cases_without_events_can_be_a_table(tmp_path: Path) -> None:
    log = veilog.Variants.from_dict({(): 3000, ("a", "b"): 5000})
    released = openly.release(log, "laplace", epsilon=1, seed=1)
    empty = released.variants.to_dict()[()]
    (left_out,) = (r for r in released.remarks if r.code == "release-cases-without-event")
    assert left_out.values["empty"] == empty
    released.save(tmp_path / "out.csv")
    assert veilog.read(tmp_path / "out.csv").cases.num_rows == released.variants.cases - empty
    released.save(tmp_path / "out.xes")
    assert veilog.read(tmp_path / "out.xes").cases.num_rows == released.variants.cases


def test_an_empty_release_says_why_in_place_of_a_file(tmp_path: Path) -> None:
    empty = openly.release(Variants.from_dict({("a",): 1}), "travas", epsilon=1, delta="1e-9")
    with refused(OutputError, "release-empty"):
        empty.save(tmp_path / "r.xes")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", veilog.METHODS.values(), ids=lambda m: m.name)
def test_no_parameter_of_a_method_has_the_name_of_one_of_release(method: veilog.Method) -> None:
    own = {*inspect.signature(veilog.release).parameters, *(n for n, option in OPTIONS.items() if option.keyword)}
    clash = {p.name for p in method.parameters} & own
    assert clash <= {"guessing_advantage"}, "release() would take it for its own"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evolve", "laplace"])
def test_a_part_without_events_is_released_with_the_facts_of_the_log(tmp_path: Path, method: str) -> None:
    """A subset without cases is released, because a refusal would reveal that."""
    ledger = Ledger.open(tmp_path / "l", create=True)
    released = openly.release(hospital(50, 1), method, epsilon=1, subset="month=1990-01", ledger=ledger)
    assert released.guarantee.proven and released.guarantee.epsilon == 1
    assert {condition.code for condition in released.guarantee.conditions} >= {"activities-from-log"}
    assert "no-case-in-subset" in [note.code for note in released.owner_only.notes]


def test_with_declared_facts_a_part_without_cases_is_released_like_any_other_and_the_owner_told() -> None:
    declared = veilog.Domain(("come", "see", "go"), 10)
    released = veilog.release(hospital(50, 1), "laplace", epsilon=1, subset="month=1990-01", domain=declared)
    assert released.guarantee.proven and released.guarantee.epsilon == 1
    assert "no-case-in-subset" in [note.code for note in released.owner_only.notes]
    assert released.noise_only, "computed from the answers, so a recipient may know it"
    told = json.dumps({**released.to_json(), "owner_only": None})
    assert "no-case-in-subset" not in told
    assert not any(str(note) in told for note in released.owner_only.notes)


@pytest.mark.parametrize("last", ["9999-12-31", "9999-12-30", "9000-01-01"])
def test_a_window_of_the_log_that_is_too_wide_is_refused_before_anything_is_paid(tmp_path: Path, last: str) -> None:
    """A window of the log that is too wide is refused before anything is spent."""
    rows = [f"c{i},a,2024-01-0{1 + i % 9}T10:00:00Z" for i in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(["case,activity,time", *rows, f"x,a,{last}T01:00:00Z"]) + "\n")
    log = veilog.read(tmp_path / "log.csv")
    place = tmp_path / "log.ledger"
    with refused(ParameterError, "window-weeks-too-many"):
        veilog.release(log, "evolve", epsilon=2, activities=["a"], times="0.4", window="log", ledger=place)
    (account,) = Ledger.open(place).show()
    assert account.spent == (0, 0)


@pytest.mark.slow
def test_the_owner_is_told_what_delta_costs_among_all_cases_where_few_come_out() -> None:
    alike, own = {("a",): 100}, {("b",) * (i + 1): 1 for i in range(2000)}
    found = veilog.release(Variants.from_dict({**alike, **own}), "travas", epsilon=1, delta=0.001)
    assert found.guarantee.cases is not None and found.guarantee.cases < 1000
    note = found.owner_only.notes[0]
    assert (note.code, note.values["cases"], str(note.values["enough"])) == ("cases-exposed", 2_100, "4e-06")
    assert "2,100" not in json.dumps([found.remarks, found.guarantee.in_words()], default=str)
    # Where all come out, the word itself is by as many.
    every = veilog.release(Variants.from_dict({("a",): 2000}), "travas", epsilon=1, delta=0.001)
    assert "cases-exposed" not in [note.code for note in every.owner_only.notes]
