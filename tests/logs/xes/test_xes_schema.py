"""Written XES is valid by the rules of :mod:`xes_rules`, and by the schema itself.

VEILOG_XES_SCHEMA names a file with the schema of XES 1.0 (without its namespace).
"""

from __future__ import annotations

import io
import itertools
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import openly
import pyarrow as pa
import pytest
from xes_rules import is_name, problems

import veilog
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, LIFECYCLE, EventLog
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.xes.columns import field_key, legal_keys
from veilog.logs.xes.writer import write_xes
from veilog.releasing.result import Release, as_released

LOG = hospital(150, seed=1)
AGES = ["0-17", "18-39", "40-59", "60-79", "80+"]


@pytest.fixture(scope="module")
def by_schema() -> Callable[[bytes], bool]:
    """Return a validator by the schema that VEILOG_XES_SCHEMA names."""
    path = os.environ.get("VEILOG_XES_SCHEMA")
    if not path:
        pytest.skip("VEILOG_XES_SCHEMA names no file with the schema of XES 1.0, without its namespace")
    etree = pytest.importorskip("lxml.etree", reason="lxml, which comes with pm4py, checks schemas")
    schema = etree.XMLSchema(etree.parse(path))

    def valid(document: bytes) -> bool:
        return bool(
            schema.validate(etree.fromstring(document.replace(b' xmlns="http://www.xes-standard.org/"', b"", 1)))
        )

    return valid


# Releases -----------------------------------------------------------------------------------------------------------

DOMAIN = veilog.Domain(attributes={"age group": AGES, "urgency": (1, 5)})
RELEASES: dict[str, tuple[str, dict[str, Any]]] = {
    "evolve": ("evolve", {"epsilon": 1}),
    "with times and attributes": (
        "evolve",
        {"epsilon": 4, "times": "0.3", "attributes": ["age group", "urgency"], "domain": DOMAIN},
    ),
    "travas": ("travas", {"epsilon": 2, "delta": "0.01"}),
    "laplace": ("laplace", {"epsilon": 4}),
    "pripel": ("pripel", {"epsilon": 4}),
    "pripel as published": ("pripel", {"epsilon": 4, "as_published": True}),
    "amun": ("amun", {"as_published": True}),
    "libra": ("libra", {"epsilon": 5, "delta": "0.01", "as_published": True, "seed": 1, "b": 0.5}),
    "tlkc": ("tlkc", {"k": 2, "sensitive": "age group"}),
    "pretsa": ("pretsa", {"k": 2, "sensitive": "org:resource"}),
    "seeded": ("travas", {"epsilon": 2, "delta": "0.01", "seed": 123454321}),
}


@pytest.fixture(scope="module", params=RELEASES)
def released(request: pytest.FixtureRequest) -> Release:
    method, settings = RELEASES[request.param]
    made = openly.release(LOG, method, **settings)
    assert made.variants.events
    return made


def saved(release: Release, path: Path) -> bytes:
    release.save(path)
    return path.read_bytes()


@pytest.mark.nightly(but=1)
def test_a_release_is_valid_by_the_rules(released: Release, tmp_path: Path) -> None:
    document = saved(released, tmp_path / "out.xes")
    assert problems(document) == []
    assert b'xes.version="1.0"' in document


@pytest.mark.slow
def test_a_release_is_valid_by_the_schema(
    released: Release, tmp_path: Path, by_schema: Callable[[bytes], bool]
) -> None:
    assert by_schema(saved(released, tmp_path / "out.xes"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xes.gz", ".csv", ".parquet"])
def test_every_released_event_has_a_life_cycle(released: Release, tmp_path: Path, suffix: str) -> None:
    released.save(tmp_path / f"out{suffix}")
    again = veilog.read(tmp_path / f"out{suffix}")
    found = again.events.column(LIFECYCLE).to_pylist()
    assert found == ["complete"] * released.variants.events
    if suffix != ".csv":
        assert "Lifecycle" in {name for name, _, _ in again.metadata.extensions}
    assert (released.to_pandas()[LIFECYCLE] == "complete").all()


@pytest.mark.slow
def test_a_life_cycle_that_was_released_stays() -> None:
    domain = veilog.Domain(attributes={LIFECYCLE: ["start", "complete"]})
    made = openly.release(LOG, "evolve", epsilon=8, attributes=[LIFECYCLE], domain=domain)
    assert made.details is not None
    assert made.log.events.column_names.count(LIFECYCLE) == 1
    assert made.log.events.column(LIFECYCLE).to_pylist() == made.details.columns.events[LIFECYCLE].to_pylist()
    assert LIFECYCLE not in {a.key for _, found in made.log.metadata.globals for a in found}
    assert "Lifecycle" in {name for name, _, _ in made.log.metadata.extensions}


def test_a_release_without_events_has_the_column_too() -> None:
    log = as_released(EventLog(LOG.events.slice(0, 0).drop_columns([LIFECYCLE]), LOG.cases), Metadata())
    assert log.events.num_rows == 0
    assert log.events.column(LIFECYCLE).to_pylist() == []


@pytest.mark.slow
def test_a_file_says_nothing_of_its_owner(tmp_path: Path) -> None:
    made = openly.release(LOG, "evolve", epsilon=1)
    first = replace(made)
    owners = replace(made.owner_only, seconds=400_000.0, notes=("98 765 cases",))
    other = replace(made, owner_only=owners, parameters={})
    for suffix in (".xes", ".csv", ".parquet"):
        assert saved(first, tmp_path / f"first{suffix}") == saved(other, tmp_path / f"other{suffix}")


def test_a_file_does_not_give_the_seed_away(tmp_path: Path) -> None:
    method, settings = RELEASES["seeded"]
    made = openly.release(LOG, method, **settings)
    document = saved(made, tmp_path / "out.xes")
    assert b"seeded" in document
    assert b"123454321" not in document


# Other tools --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pm4py_opens_a_release(released: Release, tmp_path: Path) -> None:
    pm4py = pytest.importorskip("pm4py")
    saved(released, tmp_path / "out.xes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = pm4py.read_xes(str(tmp_path / "out.xes"), return_legacy_log_object=True, variant="iterparse")
    again = veilog.read(tmp_path / "out.xes")
    assert [tuple(event[ACTIVITY] for event in trace) for trace in log] == traces(again)
    assert veilog.Variants.from_dict(counted(traces(again))) == released.variants
    assert {event[LIFECYCLE] for trace in log for event in trace} == {"complete"}
    said = log.attributes["privacy:anonymizations"]["children"]
    operations = {key: value for key, value in said.items() if "operation" in key}
    assert len(operations) == len(released.operations)
    assert len(said) == len(operations) + len(released.remarks_for_all)
    said = operations["privacy:operation1"]["children"]
    assert said["privacy:method"] == released.operations[0].method


@pytest.mark.slow
def test_r4pm_opens_a_release(released: Release, tmp_path: Path) -> None:
    r4pm = pytest.importorskip("r4pm", reason="r4pm is in the group bench")
    pytest.importorskip("polars", reason="r4pm needs polars for tables")
    saved(released, tmp_path / "out.xes")
    events, facts = r4pm.df.import_xes(str(tmp_path / "out.xes"))
    again = veilog.read(tmp_path / "out.xes")
    assert events[ACTIVITY].to_list() == again.events.column(ACTIVITY).to_pylist()
    assert set(events[LIFECYCLE].to_list()) == {"complete"}
    assert '"privacy:operation1"' in facts


def traces(log: EventLog) -> list[tuple[str, ...]]:
    names, offsets = log.events.column(ACTIVITY).to_pylist(), log.offsets.tolist()
    return [tuple(names[a:b]) for a, b in itertools.pairwise(offsets)]


def counted(found: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    return {trace: found.count(trace) for trace in set(found)}


# Keys ---------------------------------------------------------------------------------------------------------------

ODD_KEYS = [
    "age group",
    "age_group",
    "2nd",
    "",
    "Größe",
    "病院",
    "naïve <&\">'",
    "a\nb",
    "-x",
    "x-1.2",
    "org:role",
    "ș",
    "😀",
]


def test_keys_become_names_and_none_falls_together() -> None:
    table = pa.table({name: [1] for name in ODD_KEYS})
    keys = [field_key(field) for field in legal_keys(table).schema]
    assert all(map(is_name, keys))
    assert len(set(keys)) == len(keys)
    legal = ["age_group", "Größe", "病院", "x-1.2", "org:role"]
    assert [key for key, name in zip(keys, ODD_KEYS, strict=True) if key == name] == legal
    assert keys[0] == "age_group_2"
    assert legal_keys(table).column_names == ODD_KEYS
    assert legal_keys(legal_keys(table)).schema.equals(legal_keys(table).schema, check_metadata=True)


@pytest.mark.slow
def test_an_attribute_keeps_its_name_where_that_is_legal(tmp_path: Path) -> None:
    method, settings = RELEASES["with times and attributes"]
    made = openly.release(LOG, method, **settings)
    assert "age group" in made.log.cases.column_names
    saved(made, tmp_path / "out.xes")
    assert "age_group" in veilog.read(tmp_path / "out.xes").cases.column_names
    for suffix in (".csv", ".parquet"):
        made.save(tmp_path / f"out{suffix}")
        assert "age group" in veilog.read(tmp_path / f"out{suffix}").cases.column_names


def test_cases_without_events_keep_attributes_in_parquet(tmp_path: Path) -> None:
    log = hospital(20, seed=2)
    empty = EventLog(log.events.filter(pa.compute.not_equal(log.events.column(CASE_INDEX), 3)), log.cases, log.metadata)
    files.write(as_released(empty, Metadata()), tmp_path / "out.parquet")
    again = veilog.read(tmp_path / "out.parquet")
    assert again.cases.column("age group").to_pylist() == log.cases.column("age group").to_pylist()


# Any log ------------------------------------------------------------------------------------------------------------

HEAD = '<log xes.version="1.0" xmlns="http://www.xes-standard.org/">'
CASE = (
    '<trace><string key="concept:name" value="1"/><event><string key="concept:name" value="a"/>'
    '<date key="time:timestamp" value="2020-01-01T00:00:00Z"/>{}</event></trace>'
)
NESTED = '<string key="a" value="&quot;type&quot;:&quot;list&quot;"><int key="b" value="1"/></string>'
LIST = '<string key="a" value="x"><list key="b"><values><int key="c" value="1"/></values></list></string>'
CONTAINER = '<container key="a"><int key="b" value="1"/></container>'


@pytest.mark.slow
@pytest.mark.parametrize("place", ["log", "event"])
@pytest.mark.parametrize(("inner", "version"), [(NESTED, "1.0"), (LIST, "2.0"), (CONTAINER, "2.0")])
@pytest.mark.parametrize("given", ['xes.version="1.0"', 'xes.version="1"', ""])
def test_the_version_is_one_that_has_what_the_log_has(
    tmp_path: Path, place: str, inner: str, version: str, given: str
) -> None:
    head = HEAD.replace('xes.version="1.0"', given)
    body = inner + CASE.format("") if place == "log" else CASE.format(inner)
    (tmp_path / "in.xes").write_text(f"{head}{body}</log>")
    log = veilog.read(tmp_path / "in.xes")
    veilog.write(log, tmp_path / "out.xes")
    document = (tmp_path / "out.xes").read_bytes()
    assert (b'xes.version="2.0"' in document) == (version == "2.0")
    assert (problems(document) == []) == (version == "1.0")
    veilog.write(veilog.read(tmp_path / "out.xes"), tmp_path / "again.xes")
    assert (tmp_path / "again.xes").read_bytes() == document
    files.write_pieces([log], tmp_path / "pieces.xes")
    assert (b'xes.version="2.0"' in (tmp_path / "pieces.xes").read_bytes()) >= (version == "2.0")


@pytest.mark.parametrize("version", ["2.0", "1849-2016", "1849.2016"])
def test_a_version_with_lists_stays(tmp_path: Path, version: str) -> None:
    head = HEAD.replace('"1.0"', f'"{version}"')
    for inner in (LIST, ""):
        (tmp_path / "in.xes").write_text(f"{head}{CASE.format(inner)}</log>")
        veilog.write(veilog.read(tmp_path / "in.xes"), tmp_path / "out.xes", overwrite=True)
        assert f'xes.version="{version}"' in (tmp_path / "out.xes").read_text()


@pytest.mark.slow
def test_logs_are_written_valid(tmp_path: Path) -> None:
    plain = EventLog(LOG.events, LOG.cases.select([ACTIVITY, "urgency"]), Metadata())
    for log in (plain, replace(plain, metadata=LOG.metadata)):
        veilog.write(log, tmp_path / "out.xes", overwrite=True)
        assert problems((tmp_path / "out.xes").read_bytes()) == []


# The check itself ---------------------------------------------------------------------------------------------------

GOOD = (
    '<extension name="Time" prefix="time" uri="http://x/"/><global scope="event"><int key="a" value="1"/></global>'
    f'<classifier name="A" keys="a b"/><boolean key="t" value="true"/>{CASE.format("")}'
)
BAD = {
    "a container": CONTAINER + CASE.format(""),
    "a key of digits": '<string key="1" value=""/>' + CASE.format(""),
    "a key with a space": '<string key="a b" value=""/>' + CASE.format(""),
    "no key": '<string value=""/>' + CASE.format(""),
    "no value": '<string key="a"><string key="b" value=""/></string>' + CASE.format(""),
    "no number": '<int key="a" value="1.5"/>' + CASE.format(""),
    "too large a number": '<int key="a" value="9223372036854775808"/>' + CASE.format(""),
    "no time": '<date key="a" value="2020-01-01 10:00"/>' + CASE.format(""),
    "no float": '<float key="a" value="inf"/>' + CASE.format(""),
    "an attribute too late": CASE.format("") + '<string key="a" value=""/>',
    "an extension too late": '<string key="a" value=""/><extension name="T" prefix="t" uri="http://x/"/>',
    "an extension without a uri": '<extension name="T" prefix="t"/>',
    "a classifier with a space": '<classifier name="Event Name" keys="a"/>',
    "an unknown element": "<values/>" + CASE.format(""),
    "an attribute of an event too late": '<trace><event/><string key="a" value=""/></trace>',
    "an unknown XML attribute": '<trace name="a"/>',
    "text": "<trace>text</trace>",
}


def test_what_is_valid_passes(by_schema: Callable[[bytes], bool]) -> None:
    assert by_schema(f"{HEAD}{GOOD}</log>".encode())


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_the_rules_find_what_the_schema_finds(body: str, by_schema: Callable[[bytes], bool]) -> None:
    assert not by_schema(f"{HEAD}{body}</log>".encode())


@pytest.mark.parametrize("body", [*BAD.values(), LIST + CASE.format("")], ids=[*BAD.keys(), "a list"])
def test_the_rules_find(body: str) -> None:
    assert problems(f"{HEAD}{GOOD}</log>".encode()) == []
    assert problems(f"{HEAD}{body}</log>".encode())
    assert problems(HEAD.replace('xes.version="1.0" ', "").encode() + b"</log>")
    assert problems(HEAD.replace('"1.0"', '"1849-2016"').encode() + b"</log>")


def test_what_releases_said_before_was_not_valid() -> None:
    operation = Attribute("1", None, "container", (Attribute("privacy:status", "proven", "string"),))
    old = Metadata(version="1.0", attributes=(Attribute("privacy:anonymizations", None, "container", (operation,)),))
    assert {"container in log", "container in container"} <= set(problems(bytes_of(replace(LOG, metadata=old))))


def bytes_of(log: EventLog) -> bytes:
    target = io.BytesIO()
    write_xes(log, target)
    return target.getvalue()
