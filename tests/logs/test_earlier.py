"""A file made of another keeps how that was read, and its releases report it."""

import json
from pathlib import Path

import pytest
from spark_session import spark_here

import veilog
from veilog.errors import ParameterError
from veilog.ledger.entry import kind_of_case, of_rule
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read_variants
from veilog.logs.findings import DUPLICATES
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.provenance import ATTRIBUTES_TOGETHER, UNKNOWN, Provenance, split_metadata
from veilog.logs.storage.loader import store
from veilog.messages import Message

ROWS = """Visit,Stay,activity,timestamp,age
1,5,a,2024-01-01T08:00Z,7
1,5,b,2024-01-02T08:00Z,8
2,6,a,2024-01-03T08:00Z,9
"""


def grouped(how: str) -> Message:
    return Message("activities-grouped", how=how, digest="0123456789ab")


def noted(message: Message) -> dict[str, object]:
    """A message as a file has it."""
    return message.to_json()


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(ROWS)
    return tmp_path / "log.csv"


def read(csv: Path, case: str = "Visit") -> EventLog:
    policies = {"duplicate-case-id": "drop"}
    return veilog.read(csv, case=case, policies=policies, map={"a": "x", "b": "y"})  # type: ignore[arg-type]


def conditions(log: EventLog) -> dict[str, str]:
    made = veilog.release(log, "laplace", epsilon=1, activities=["x", "y"], depth=2)
    return {condition.code: condition.text for condition in made.guarantee.conditions}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".xes.gz", ".xlsx"])
def test_a_release_of_a_file_says_what_one_of_the_file_before_says(csv: Path, suffix: str) -> None:
    before = read(csv)
    veilog.write(before, csv.with_suffix(suffix))
    after = veilog.read(csv.with_suffix(suffix))
    assert conditions(after) == conditions(before)
    assert conditions(after).keys() == {"columns-read-together", "activities-mapped"}
    assert ATTRIBUTES_TOGETHER in after.attributes_read_together and len(after.attributes_read_together) == 1
    assert after.metadata == Metadata() or suffix == ".xes.gz", "it is no attribute of the log"
    veilog.write(after, csv.with_name(f"again{suffix}"))
    again = veilog.read(csv.with_name(f"again{suffix}"))
    assert conditions(again) == conditions(before) and again.read_as == after.read_as


@pytest.mark.slow
def test_so_do_variants_and_logs_on_disk(csv: Path) -> None:
    before, path = read(csv), csv.with_suffix(".parquet")
    veilog.write(before, path)
    variants = read_variants(path)
    kept = store(path)
    assert kept is not None
    for found in (variants, kept):
        assert (found.read_together, found.mapped) == (before.read_together, before.mapped)
        assert found.read_as == veilog.read(path).read_as
    assert kept.attributes_read_together == before.attributes_read_together
    kept.close()
    veilog.write(veilog.read(csv, case="Visit"), csv.with_name("second.parquet"))
    assert read_variants(csv.parent / "*.parquet").mapped == before.mapped, "of one of several files"
    mapped = read_variants(path, map={"x": "z", "y": "z"}).mapped
    assert mapped[:1] == before.mapped and [one.code for one in mapped] == ["activities-grouped"] * 2


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")  # Ibis's
def test_so_do_variants_that_spark_groups(csv: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Variants that Spark groups keep the conditions of the log behind their file."""
    path = csv.with_suffix(".parquet")
    veilog.write(read(csv), path)
    with spark_here(tmp_path_factory.mktemp("spark")):
        found = read_variants(path, engine="spark")
    expected = read_variants(path)
    assert found == expected and DUPLICATES in found.read_together
    assert (found.read_together, found.mapped) == (expected.read_together, expected.mapped)
    assert found.read_as == expected.read_as


def test_a_log_that_is_read_as_it_is_keeps_nothing(csv: Path) -> None:
    veilog.write(veilog.read(csv, case="Visit"), csv.with_suffix(".xes"))
    log = veilog.read(csv.with_suffix(".xes"))
    veilog.write(log, csv.with_name("again.xes"))
    assert "veilog:read" in csv.with_suffix(".xes").read_text(), "what a case was"
    assert kind_of_case(log.read_as) == "Visit" and not log.read_together
    made = EventLog(log.events, log.cases)
    veilog.write(made, csv.with_name("made.xes"))
    assert "veilog:read" not in csv.with_name("made.xes").read_text()


def test_files_of_two_kinds_of_cases_are_two_kinds_in_a_ledger(csv: Path) -> None:
    """Both have a column case:concept:name, so their releases were added up."""
    kinds = []
    for case in ("Visit", "Stay"):
        veilog.write(read(csv, case), csv.with_name(f"{case}.parquet"))
        kinds.append(kind_of_case(veilog.read(csv.with_name(f"{case}.parquet")).read_as))
    assert kinds == ["Visit", "Stay"]


def test_days_of_times_of_which_some_had_no_zone_are_not_known_to_be_apart(csv: Path) -> None:
    csv.write_text(ROWS.replace("2024-01-02T08:00Z", "2024-01-02T08:00"))
    veilog.write(read(csv), csv.with_suffix(".parquet"))
    way = veilog.read(csv.with_suffix(".parquet")).read_as
    assert of_rule("month", read(csv).read_as) is None and of_rule("month", way) is None
    assert of_rule("ward", way) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "given"),
    [
        (".parquet", {"case": "Stay"}),
        (".xlsx", {"case": "Stay"}),
        (".parquet", {"classifier": "concept:name Stay"}),
        (".xlsx", {"classifier": "concept:name Stay"}),
        (".xes", {"classifier": "concept:name Stay"}),
        (".parquet", {"lifecycle": "intervals"}),
        (".xes", {"lifecycle": "intervals"}),
    ],
)
def test_attributes_that_tell_cases_or_activities_then_were_read_together(
    tmp_path: Path, suffix: str, given: dict[str, str]
) -> None:
    """Attributes that name cases or activities are read together, so one case matters.

    A stay that is text makes 1.50 and 1.5 two texts, which are one number: cases and activities of others differ.
    """
    rows = [f"v{i},{stay},a,2024-01-01T0{i}:00Z,2024-01-01T00:30Z" for i, stay in enumerate(["1.50", "1.5", "2.5"])]
    found = []
    for more in ([], ["x,high,a,2024-01-01T08:00Z,soon"]):
        (tmp_path / "log.csv").write_text("\n".join(["Visit,Stay,activity,timestamp,start_timestamp", *rows, *more]))
        before = veilog.read(tmp_path / "log.csv", case="Visit", activity="activity", timestamp="timestamp")
        veilog.write(before, tmp_path / f"made{suffix}", overwrite=True)
        assert ATTRIBUTES_TOGETHER not in veilog.read(tmp_path / f"made{suffix}").read_together
        reading = {"policies": {"bad-timestamp": "keep"}, **given}
        try:
            found.append(veilog.read(tmp_path / f"made{suffix}", **reading))  # type: ignore[arg-type]
        except ParameterError:  # one start that is no time is text: there are no starts then
            assert more and (suffix, given) == (".xes", {"lifecycle": "intervals"})
            continue
        assert ATTRIBUTES_TOGETHER in found[-1].read_together
        assert found[-1].variants.read_together == found[-1].read_together
        if suffix == ".parquet" and "lifecycle" not in given:
            assert ATTRIBUTES_TOGETHER in read_variants(tmp_path / "made.parquet", **given).read_together  # type: ignore[arg-type]
            kept = store(tmp_path / "made.parquet", **given)  # type: ignore[arg-type]
            assert kept is None or ATTRIBUTES_TOGETHER in kept.read_together
    if given.get("case"):
        assert [log.cases.num_rows for log in found] == [2, 4], "that is why"


@pytest.mark.parametrize(
    "said",
    [
        "no JSON",
        json.dumps(["a", "list"]),
        json.dumps({"together": ["Anna was here"], "attributes": []}),
        json.dumps({"together": [], "attributes": [], "mapped": "Anna was here"}),
        json.dumps({"together": [noted(Message("Anna was here"))], "attributes": [], "mapped": []}),
        json.dumps({"together": [noted(Message(DUPLICATES.code, how="Anna"))], "attributes": [], "mapped": []}),
        json.dumps({"together": [], "attributes": [], "mapped": [noted(DUPLICATES)]}),
        json.dumps({"together": [], "attributes": [], "way": 5}),
        json.dumps({"together": [], "attributes": [], "way": "not JSON"}),
        json.dumps({"together": [], "attributes": [], "way": "5"}),
        json.dumps({"together": [], "attributes": [], "way": json.dumps({"case": "\ud800"})}),
        json.dumps({"together": [], "attributes": [], "way": '{"before":' * 900 + "{}" + "}" * 900}),
        json.dumps({"together": [], "attributes": [], "mapped": [noted(grouped("\ud800"))]}),
        json.dumps({"together": [], "attributes": [], "mapped": [noted(grouped("m" * 500))]}),
        "[" * 200_000,
    ],
    ids=range(15),
)
def test_no_sentence_of_a_file_is_said_that_veilog_does_not_write(said: str) -> None:
    metadata, found = split_metadata(Metadata(attributes=(Attribute("veilog:read", said, "string"),)))
    assert metadata == Metadata() and found == Provenance((UNKNOWN,))


def test_what_veilog_writes_is_known() -> None:
    on_addons = Message("read-by-add-on", name="mine", package="some-package 1.0")
    said = {"together": [noted(DUPLICATES), noted(on_addons)], "attributes": [noted(ATTRIBUTES_TOGETHER)]}
    text = json.dumps(said | {"mapped": [noted(grouped("m"))], "way": ""})
    found = split_metadata(Metadata(attributes=(Attribute("veilog:read", text, "string"),)))[1]
    assert found == Provenance((DUPLICATES, on_addons), (ATTRIBUTES_TOGETHER,), (grouped("m"),))
    assert [dict(one.values) for one in found.together] == [{}, {"name": "mine", "package": "some-package 1.0"}]
