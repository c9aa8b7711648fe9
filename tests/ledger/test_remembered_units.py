"""Units that move between subsets: assumptions that none does, and their omission."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from refusals import refused

import veilog
from veilog.cli import main
from veilog.errors import ParameterError
from veilog.ledger import store as ledger_file
from veilog.ledger.ledger import Ledger
from veilog.privacy.partition import Partition
from veilog.releasing.result import Release

ASKED = ("-m", "laplace", "--epsilon", "1", "--activities", "a,b", "--max-length", "4", "--no-compare")
SUBSETS = ("month=2024-03", "month=2024-04")
Row = tuple[str, str, str, str]


def rows(month: str, names: Sequence[str], person: str = "p") -> list[Row]:
    return [(name, f"{person}{name}", a, f"2024-{month}-0{day}") for name in names for day, a in ((1, "a"), (2, "b"))]


def written(path: Path, content: list[Row]) -> Path:
    path.write_text("\n".join(["case,patient,activity,time", *(",".join(row) for row in content)]) + "\n")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "w.ledger", create=True, account="w")


def extracts(tmp_path: Path, moves: Sequence[str]) -> tuple[Path, Path]:
    """Return two extracts by the date of events; ``moves`` have events in both months."""
    march, april = [f"m{n}" for n in range(40)], [f"a{n}" for n in range(40)]
    return (
        written(tmp_path / "march.csv", rows("03", [*march, *moves])),
        written(tmp_path / "april.csv", rows("04", [*april, *moves])),
    )


def released(path: Path, subset: str, ledger: Ledger, *, remember: bool = True, **more: object) -> Release:
    domain = veilog.Domain(activities=("a", "b"), max_length=4)
    asked = {"epsilon": 30, "allow_no_protection": True, "domain": domain, "ledger": ledger, "subset": subset, **more}
    return veilog.release(path, "laplace", remember_units=remember, **asked)  # type: ignore[arg-type]


def codes(release: Release) -> set[str]:
    return {condition.code for condition in release.guarantee.conditions}


def looked_at(release: Release) -> int:
    """Return the number of cases of a release, nearly exact at so large an epsilon."""
    return release.variants.cases


def test_a_subset_has_a_condition_in_the_guarantee_its_json_and_its_entry(tmp_path: Path, ledger: Ledger) -> None:
    march, _ = extracts(tmp_path, ["span"])
    made = released(march, SUBSETS[0], ledger, remember=False)
    assert "cases-keep-their-subset" in codes(made)
    assert "cases-keep-their-subset" in {check["code"] for check in made.to_json()["to_confirm"]}  # type: ignore[index]
    (entry,) = ledger.show()[0].entries
    assert entry.guarantee is not None
    assert "cases-keep-their-subset" in {condition["code"] for condition in entry.guarantee["conditions"]}
    assert "cases-keep-their-subset" not in codes(
        veilog.release(march, "laplace", epsilon=1, domain=veilog.Domain(("a", "b"), 4), ledger=False)
    )


@pytest.mark.slow
def test_a_case_that_moves_is_left_out_of_the_later_subset(tmp_path: Path, ledger: Ledger) -> None:
    moves = [f"s{n}" for n in range(20)]
    march, april = extracts(tmp_path, moves)
    first, second = (released(path, subset, ledger) for path, subset in zip((march, april), SUBSETS, strict=True))
    assert abs(looked_at(first) - 60) < 5 and abs(looked_at(second) - 40) < 5
    assert codes(second) >= {"units-keep-their-names"} and "cases-keep-their-subset" not in codes(second)
    assert ledger.show()[0].spent == (30, 0), "each case lost one of them"
    (note,) = [note for note in second.owner_only.notes if note.code == "cases-in-another-subset"]
    assert note.values["cases"] == 20
    assert str(note) not in json.dumps({k: v for k, v in second.to_json().items() if k != "owner_only"})
    again = released(march, SUBSETS[0], ledger)
    assert abs(looked_at(again) - 60) < 5, "in its own subset it is looked at again"
    without = Ledger.open(tmp_path / "other.ledger", create=True, account="w")
    released(march, SUBSETS[0], without, remember=False)
    assert abs(looked_at(released(april, SUBSETS[1], without, remember=False)) - 60) < 5, "it lost both"


@pytest.mark.slow
def test_a_unit_changes_what_is_kept_and_left_out_of_itself_alone(tmp_path: Path) -> None:
    """Neighbouring logs lead to kept units that differ in one unit and nothing else."""
    ledgers = [Ledger.open(tmp_path / f"{n}.ledger", create=True, account="w") for n in range(2)]
    key = b"k" * 32
    kept = []
    for ledger, moves in zip(ledgers, (["s1", "s2"], ["s1"]), strict=True):
        march, april = (veilog.read(path) for path in extracts(tmp_path, moves))
        ledger.enter(march)
        with ledger_file.transaction(ledger.path, write=True, patience=1, waiting=None) as book:
            book.connection.execute("UPDATE book SET key = ?", (key,))
        found = []
        for log, subset in ((march, SUBSETS[0]), (april, SUBSETS[1])):
            names = [str(name) for name in log.cases.column("concept:name").to_pylist()]
            units = ledger.units(log, Partition.of(subset), "case", names)
            ledger.enter(log)
            ledger.reserve(log, "laplace", epsilon=1, subset=Partition.of(subset), units=units)  # type: ignore[arg-type]
            looked = {name for name, new in zip(names, units.new.tolist(), strict=True) if new}
            digests = {units.digests[place : place + 16] for place in range(0, len(units.digests), 16)}
            found.append((looked, digests))
        kept.append(found)
    (march, march_digests), (april, april_digests) = kept[0]
    (march_without, march_digests_without), (april_without, april_digests_without) = kept[1]
    assert march - march_without == {"s2"} and not march_without - march
    assert len(march_digests - march_digests_without) == 1 and not march_digests_without - march_digests
    assert april == april_without and april_digests == april_digests_without
    assert not {"s1", "s2"} & april


@pytest.mark.slow
def test_persons_are_known_by_their_own_names_and_their_subsets_cost_the_largest(
    tmp_path: Path, ledger: Ledger
) -> None:
    """Persons are remembered by their own names, although their cases change theirs."""
    march = written(tmp_path / "march.csv", [*rows("03", [f"m{n}" for n in range(40)]), *rows("03", ["x"])])
    april = written(
        tmp_path / "april.csv", [("x2", "px", "a", "2024-04-01"), *rows("04", [f"a{n}" for n in range(40)])]
    )
    whom = {"unit": "patient", "max_cases": 1}
    released(march, SUBSETS[0], ledger, **whom)
    second = released(april, SUBSETS[1], ledger, **whom)
    assert "one-case-in-another-subset" in [note.code for note in second.owner_only.notes]
    assert ledger.show()[0].spent == (30, 0)
    released(april, SUBSETS[1], ledger, remember=False, **whom)
    assert ledger.show()[0].spent == (60, 0), "those that are not remembered add up"


def test_digests_and_key_are_in_no_export_and_take_16_bytes_a_unit(tmp_path: Path, ledger: Ledger) -> None:
    march, _ = extracts(tmp_path, ["span"])
    released(march, SUBSETS[0], ledger)
    with ledger_file.transaction(ledger.path, write=False, patience=1, waiting=None) as book:
        ((_, digests),) = book.connection.execute("SELECT * FROM units").fetchall()
        key = book.key
    assert len(digests) == 16 * 41
    assert b"m0\x00" not in digests
    for name in ("out.json", "out.csv"):
        ledger.export(tmp_path / name)
        text = (tmp_path / name).read_text()
        assert key.hex() not in text and digests[:16].hex() not in text and "m0" not in text


def test_the_seal_holds_the_digests(tmp_path: Path, ledger: Ledger) -> None:
    march, _ = extracts(tmp_path, [])
    released(march, SUBSETS[0], ledger)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE units SET digests = x''")
    with refused(veilog.InputError, "ledger-damaged"):
        ledger.show()


def test_what_was_withdrawn_leaves_out_nobody(tmp_path: Path, ledger: Ledger) -> None:
    march, april = (veilog.read(path) for path in extracts(tmp_path, ["span"]))
    subset = Partition.of(SUBSETS[0])
    units = ledger.units(march, subset, "case", ["span"] * march.number_of_cases)
    held = ledger.reserve(march, "laplace", epsilon=1, subset=subset, units=units)  # type: ignore[arg-type]
    other = ledger.units(april, Partition.of(SUBSETS[1]), "case", ["span"])
    assert not other.new.any()
    held.withdraw()
    assert ledger.units(april, Partition.of(SUBSETS[1]), "case", ["span"]).new.all()
    with refused(veilog.BudgetError, "ledger-subset-units-unknown"):
        ledger.reserve(april, "laplace", epsilon=1, subset=Partition.of(SUBSETS[1]), units=other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "more",
    [
        {"subset": None},
        {"ledger": False},
        {"unit": "person", "max_cases": 2},
        {"unit": "patient", "max_cases": 2, "without_person": "own"},
    ],
)
def test_what_cannot_be_remembered_is_refused(tmp_path: Path, ledger: Ledger, more: dict[str, object]) -> None:
    march, _ = extracts(tmp_path, [])
    with pytest.raises(ParameterError) as caught:
        released(march, **{"subset": SUBSETS[0], "ledger": ledger, **more})  # type: ignore[arg-type]
    assert caught.value.parameter == "remember_units"


@pytest.mark.slow
def test_the_command_remembers_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    march, april = extracts(tmp_path, ["span"])
    kept = ["--ledger", str(tmp_path / "w.ledger"), "--account", "w", "--remember-units", "--overwrite"]
    assert main(["ledger", "set", str(march), "--epsilon", "1", *kept[:4]]) == 0
    for path, subset in ((march, SUBSETS[0]), (april, SUBSETS[1])):
        out = [str(tmp_path / f"{path.stem}.xes"), "--json", str(tmp_path / "out.json")]
        assert main(["release", str(path), *out, *ASKED, *kept, "--subset", subset]) == 0
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["owner_only"]["account"]["spent"]["epsilon"] == 1.0
    assert "one-case-in-another-subset" in [note["code"] for note in told["owner_only"]["notes"]]
    assert main(["release", str(april), out[0], *ASKED, *kept]) == 2, "no subset"
