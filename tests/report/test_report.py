"""A report: what stands on it, what does not, and that nothing in a log can break it or lead out of it."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import veilog
from veilog import EventLog, Variants, report
from veilog.errors import InputError, OutputError
from veilog.logs.metadata import Attribute
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.durations import FEW, spans
from veilog.messages import Message
from veilog.privacy.curator import Curator
from veilog.releasing.result import OwnerOnly
from veilog.report import words
from veilog.report.attributes import attributes_shown
from veilog.report.words import chances

LOG = hospital(300, seed=1)
VOID = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """The tags, attributes and text of a page; fails where tags are not closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and "script" not in self.open:
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


@pytest.fixture(scope="module")
def released() -> veilog.Release:
    return veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log", seed=1)


@pytest.fixture(scope="module")
def proven() -> veilog.Release:
    return veilog.release(LOG, "travas", epsilon=1, delta="1e-4")


def page_of(released: veilog.Release | EventLog, original: EventLog | Variants | None = None) -> Page:
    return Page(report.html(released, original))


def test_it_says_what_was_released_and_what_is_guaranteed(proven: veilog.Release) -> None:
    text = page_of(proven).text
    for said in (
        "An event log, released with travas",
        f"Protection is {proven.guarantee.strength}, for a log of up to ",
        "Random noise stands before each single case",
        "at most 2.72 times as probable as without, plus δ",
        "ε = 1, δ = 0.0001",
        "k-truncated symmetric geometric",
        "logs that differ by adding or removing one case",
        "What nobody may conclude",
        "The ε and δ of all releases of one log add up",
        f"{proven.variants.cases:,} released cases",
    ):
        assert said in text


@pytest.mark.slow
def test_the_chances_follow_bayes_and_are_never_understated(proven: veilog.Release) -> None:
    # Even odds times e is a chance of e / (1 + e) = 0.73106; printed rounded up.
    rows = "on average over the noise 1 % 2.7 % 10 % 23.3 % 50 % 73.2 % 90 % 96.1 %"
    assert f"at most after reading the release, {rows}" in page_of(proven).text


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-4), (0.1, 1e-6)])
def test_the_chances_are_means_for_the_noise_that_a_delta_buys(epsilon: float, delta: float) -> None:
    """Of Gaussian noise of this epsilon and delta, odds change by more than e^epsilon with far more than delta."""

    def beyond(mu: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    mu = brentq(lambda m: beyond(m) - delta, 1e-4, 10)
    assert norm.cdf(mu / 2 - epsilon / mu) > 10 * delta, "so no page says that odds keep within it but for delta"
    curator = Curator(Variants.from_dict({("a",): 3}))
    curator.count(str(epsilon))
    g = replace(curator.guarantee(), epsilon=epsilon, delta=delta)
    losses = np.linspace(-12, 12, 200_001) * mu + mu**2 / 2  # of who is in the log
    weights = norm.pdf(losses, mu**2 / 2, mu) * (losses[1] - losses[0])
    for before, (_, after) in zip((0.01, 0.1, 0.5, 0.9), chances(g), strict=True):
        belief = before / (before + np.exp(-losses) * (1 - before))
        assert float((weights * belief).sum()) <= float(after.rstrip(" %\u202f\xa0")) / 100 + 1e-9


@pytest.mark.slow
def test_guesses_are_told_in_a_table_and_never_understated(proven: veilog.Release) -> None:
    # e^1 / 10 and 1 - e^-1 / 2, each with the delta of 0.0001, rounded up.
    text = page_of(proven).text
    for row in (
        "whether a case is in the log 50 % 73.2 %",
        "which of 2 equally likely values a case in the log has 50 % 81.7 %",
        "which of 10 equally likely values it has 10 % 27.2 %",
        "which of 100 cases it is that is in the log 1 % 2.8 %",
    ):
        assert row in text
    nothing = veilog.release(LOG, "travas", epsilon=1, delta="1e-4", seed=1)
    assert "What can somebody guess?" not in page_of(nothing).text


@pytest.mark.nightly
def test_inside_it_compares_with_the_original_and_is_marked(released: veilog.Release) -> None:
    page = page_of(released, LOG)
    for said in (
        "Not for release",
        "NOT FOR RELEASE",
        "Risk before and after",
        "What the release kept",
        "of 300 before",
    ):
        assert said in page.text
    kept = veilog.compare(LOG, released.log)
    assert kept.verdict in page.text
    assert f"{kept.relative_log_similarity:.3f}" in page.text
    assert any(tag == "img" and "original against release" in (facts["alt"] or "") for tag, facts in page.tags)


@pytest.mark.nightly
def test_outside_it_has_none_of_that(released: veilog.Release) -> None:
    text = page_of(released).text
    for said in ("ot for release", "NOT FOR RELEASE", "Risk before", "What the release kept", "before"):
        assert said not in text.replace("sure before", "")


@pytest.mark.slow
def test_outside_equal_releases_of_different_originals_give_equal_bytes() -> None:
    other = hospital(400, seed=2)
    first = veilog.release(LOG, "travas", epsilon=1, delta="1e-4", seed=5)
    second = veilog.release(other, "travas", epsilon=1, delta="1e-4", seed=5)
    assert first.variants != second.variants
    notes = OwnerOnly(seconds=99.0, notes=("A note on the log.",))
    same = replace(second, variants=first.variants, owner_only=notes, remarks=first.remarks)
    assert report.html(first) == report.html(same)
    assert report.html(first) != report.html(second)


@pytest.mark.slow
def test_outside_no_number_or_name_of_the_original_is_found() -> None:
    # Counts that noise cannot give: all other noise on these counts is within k of them, and they are rare numbers.
    original = Variants.from_dict({("reg", "see", "leave"): 70_001, ("reg", "leave"): 40_003, ("reg", "Ms Secret"): 1})
    released = veilog.release(original, "travas", epsilon=1, delta="1e-4", seed=3)
    assert "Ms Secret" not in released.variants.labels
    text = report.html(released)
    private = {str(v) for v in (*original.counts.tolist(), original.cases, original.events)} - {"1"}
    known = {str(v) for v in (*released.variants.counts.tolist(), released.variants.cases, released.variants.events)}
    numbers = set(re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d{3})", "", html.unescape(text))))
    assert not (private - known) & numbers
    assert "Ms Secret" not in text
    inside = report.html(released, original)
    assert "Ms Secret" in inside
    assert f"{original.cases:,}" in inside


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activities", "told"),
    [("log", 302), ([f"Dr. {i:03}" for i in range(400)] + ["arrive", "leave"], 402), ("privately", None)],
)
def test_outside_how_many_activities_there_are_is_told_only_as_far_as_it_is_public(
    activities: str | list[str], told: int | None
) -> None:
    # Only numbers that are said of activities count: that of some cases or steps may be the same by its noise.
    wide = Variants.from_dict({("arrive", "leave"): 100, **{("arrive", f"Dr. {i:03}"): 2 for i in range(300)}})
    text = page_of(veilog.release(wide, "evolve", epsilon=1, delta="1e-4", activities=activities, max_length=4)).text
    assert ("activities are many" in text) == (told is not None)
    assert told is None or f"{told} activities are many" in text
    said = [sentence for sentence in re.split(r"[.;]\s", text) if re.search("activit", sentence, re.IGNORECASE)]
    assert any(re.search(r"\b302\b", sentence) for sentence in said) == (told == 302)
    # Where it is the log's own number, what makes it public stands beside it.
    assumed = "The set of activity labels is public; it was taken from the log, not declared."
    assert (assumed in text) == (activities == "log")


@pytest.mark.slow
def test_outside_questions_and_remarks_of_a_release_without_a_guarantee_are_left_out() -> None:
    released = veilog.release(LOG, "laplace", epsilon=1, seed=1, activities="log", depth=5)
    assert not released.guarantee.proven
    noted = replace(released, remarks=(Message("A remark that looked at the log."),))
    outside, inside = page_of(noted).text, page_of(noted, LOG).text
    assert "Every question that was asked" in inside
    assert "Every question that was asked" not in outside
    assert "looked at the log" in inside
    assert "looked at the log" not in outside
    assert "This release has no differential privacy guarantee. Seeded" in outside


@pytest.mark.slow
def test_group_models_are_stated_in_their_own_words() -> None:
    released = veilog.release(LOG, "tlkc", as_published=True, k=5, l=2)
    text = page_of(released).text
    assert "k-anonymity (TLKC)" in text
    assert "Checked on the release." in text
    assert "fit to be published as it is" in text


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False])
def test_nothing_is_loaded_from_elsewhere(released: veilog.Release, inside: bool) -> None:
    text = report.html(released, LOG if inside else None)
    assert "://" not in text
    assert "@import" not in text
    page = Page(text)
    for tag, facts in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "form", "base"}
        assert not any(name.startswith("on") for name in facts)
        for name in ("src", "href", "xlink:href", "action"):
            assert (facts.get(name) or "#").startswith(("#", "data:image/svg+xml;base64,"))
    policy = next(facts["content"] or "" for tag, facts in page.tags if facts.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 1


HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</style></svg></title>",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 10_000,
    "a\u202egnp.exe\u0007\x1b[0m",
    "\ud800",
    "&lt;b&gt;",
    " ",
)


@pytest.mark.slow
def test_hostile_labels_are_text_and_nothing_else() -> None:
    original = Variants.from_dict({HOSTILE: 900, HOSTILE[::-1]: 800, (HOSTILE[0],) * 500: 700})
    released = veilog.release(original, "travas", epsilon=1, delta="1e-3")
    for text in (report.html(released), report.html(released, original)):
        page = Page(text)
        assert len([tag for tag, _ in page.tags if tag == "script"]) == 1
        assert not any(tag == "img" and facts.get("src") == "x" for tag, facts in page.tags)
        assert not any(tag in ("b", "title") and facts for tag, facts in page.tags)
        assert not any(name.startswith("on") for _, facts in page.tags for name in facts)
        assert "<script>alert(1)</script>" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert "x" * 201 not in text.replace("data-search", "")
        assert not re.search("[\u202e\u0007\x1b\ud800]", text)
        assert "and 476 more events" in page.text or "×500" in page.text


@pytest.mark.nightly
def test_many_variants_are_cut_and_the_page_says_so() -> None:
    many = {("start", f"a{i % 40}", f"b{i // 40}"): 1 + i % 3 for i in range(100_000)}
    released = replace(veilog.release(LOG, "travas", epsilon=1, delta="1e-4"), variants=Variants.from_dict(many))
    text = report.html(released, LOG)
    page = Page(text)
    assert len(text) < 500_000
    assert "; released: 100,000." in page.text
    assert "The others are in the release, not on this page." in page.text
    assert "veilog compare" in page.text
    assert "more activities" in page.text
    assert "more knowledge takes a while: veilog risk" in page.text


@pytest.mark.slow
def test_an_empty_release_and_one_of_empty_cases_have_a_page() -> None:
    empty = replace(veilog.release(LOG, "travas", epsilon=1, delta="1e-4"), variants=Variants.from_dict({}))
    assert "Nothing was released." in page_of(empty).text
    assert "0 released cases, of 300 before" in page_of(empty, LOG).text
    blank = replace(empty, variants=Variants.from_dict({(): 7}))
    assert "7 cases went missing" in page_of(blank).text


@pytest.mark.slow
def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, proven: veilog.Release) -> None:
    report.write(proven, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html(proven)
    with pytest.raises(OutputError, match="folder does not exist"):
        report.write(proven, tmp_path / "none" / "page.html")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.slow
def test_durations_stand_where_times_were_released_and_a_reason_where_not(
    released: veilog.Release, proven: veilog.Release
) -> None:
    assert "half up to" in page_of(released).text
    assert "its timestamps carry the order of events and nothing else" in page_of(proven).text


def test_attributes_have_a_section_and_those_of_the_original_stand_beside_them() -> None:
    before = log_with("age", [30, 40, 50, 60] * 5, "ward", ["a"] * 15 + ["b", "c", "d", "e", "f"])
    after = log_with("age", [35, 45, None, 65] * 5, "ward", ["a"] * 10 + ["b"] * 10)
    shown = {one.name: one for one in attributes_shown(after, before)}
    assert (shown["age"].of, shown["age"].released) == ("cases", "35 to 65, half up to 45; unknown: 25\u202f%")
    assert shown["age"].original == "30 to 60, half up to 40"
    assert shown["ward"].released == "“a” (50\u202f%), “b” (50\u202f%)"
    assert shown["ward"].original == "“a” (75\u202f%), “b” (5\u202f%), “c” (5\u202f%) and 3 more values"
    assert [one.original for one in attributes_shown(after, None)] == ["", ""]
    assert attributes_shown(None, before) == ()


def log_with(*columns: object) -> EventLog:
    """Twenty cases of one event, with attributes: a name, then its values."""
    log = hospital(20, seed=1)
    cases = log.cases.select(["concept:name"])
    for name, values in zip(columns[::2], columns[1::2], strict=True):
        cases = cases.append_column(str(name), pa.array(values))
    return replace(log, cases=cases, events=log.events.drop_columns(["org:resource", "leucocytes", "cost"]))


# From the file of a release -----------------------------------------------------------------------------------------


def read_again(released: veilog.Release, folder: Path) -> EventLog:
    released.save(folder / "release.xes")
    return veilog.read(folder / "release.xes")


def test_the_file_alone_tells_the_same_guarantee(tmp_path: Path, proven: veilog.Release) -> None:
    text = page_of(read_again(proven, tmp_path)).text
    assert "ε = 1, δ = 0.0001" in text
    assert "as the file states it" in text
    assert "That this report checked the guarantee" in text
    assert f"{proven.variants.cases:,} released cases" in text


@pytest.mark.slow
def test_operations_of_a_file_add_up_and_never_to_less(tmp_path: Path) -> None:
    released = veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log")
    from veilog.report.told import told_by_file

    told = told_by_file(read_again(released, tmp_path))
    assert told.guarantee.epsilon == pytest.approx(1.0)
    assert told.guarantee.epsilon is not None
    assert told.guarantee.epsilon >= 1.0
    assert told.guarantee.guessing_advantage == released.guarantee.guessing_advantage
    assert [operation.method for operation in told.operations] == ["evolve", "times"]
    assert told.timed


def in_containers(log: EventLog) -> EventLog:
    """The log as releases said it before: in containers, with numbers for keys, and without remarks."""

    def boxed(number: int, operation: Attribute) -> Attribute:
        return Attribute(str(number), None, "container", operation.children)

    said, *others = log.metadata.attributes
    operations = [one for one in said.children if one.children and "operation" in one.key]
    box = Attribute(said.key, None, "container", tuple(boxed(i, one) for i, one in enumerate(operations, 1)))
    return replace(log, metadata=replace(log.metadata, attributes=(box, *others)))


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("suffix", [".xes", ".parquet"])
def test_every_form_of_the_file_tells_the_same(tmp_path: Path, suffix: str) -> None:
    from veilog.report.told import told_by_file

    released = veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log", window="log")
    told = told_by_file(read_again(released, tmp_path))
    assert (told.guarantee.status, len(told.operations)) == ("proven", 2)
    assert set(told.guarantee.conditions) == set(released.guarantee.conditions)
    veilog.write(in_containers(released.log), tmp_path / f"before{suffix}")
    assert told.remarks == released.remarks
    assert told_by_file(veilog.read(tmp_path / f"before{suffix}")) == replace(told, remarks=())
    released.save(tmp_path / f"now{suffix}")
    assert told_by_file(veilog.read(tmp_path / f"now{suffix}")) == told


def test_a_log_that_says_nothing_of_privacy_is_refused(tmp_path: Path, proven: veilog.Release) -> None:
    with pytest.raises(InputError, match="does not say how it was made private"):
        report.html(LOG)
    proven.save(tmp_path / "release.csv")
    with pytest.raises(InputError, match="in XES, Parquet or Excel; CSV has no place for this"):
        report.html(veilog.read(tmp_path / "release.csv"))


ODD_FILES = {
    "no status": '<string key="privacy:method" value="travas"/><float key="privacy:epsilon" value="1"/>',
    "status alone": '<string key="privacy:status" value="proven"/>',
    "no number": '<string key="privacy:status" value="proven"/><string key="privacy:epsilon" value="one"/>',
    "infinite": '<string key="privacy:status" value="proven"/><float key="privacy:epsilon" value="inf"/>',
    "negative": '<string key="privacy:status" value="proven"/><float key="privacy:epsilon" value="-1"/>',
}


@pytest.mark.parametrize("facts", ODD_FILES.values(), ids=ODD_FILES.keys())
def test_a_file_that_proves_nothing_is_not_believed(tmp_path: Path, facts: str) -> None:
    (tmp_path / "odd.xes").write_text(
        '<log><container key="privacy:anonymizations"><container key="1">'
        f'<string key="privacy:type" value="differential privacy"/>{facts}</container></container>'
        '<trace><string key="concept:name" value="1"/><event><string key="concept:name" value="a"/>'
        '<date key="time:timestamp" value="2020-01-01T00:00:00Z"/></event></trace></log>'
    )
    page = page_of(veilog.read(tmp_path / "odd.xes"))
    assert "This release has no differential privacy guarantee." in page.text
    assert not any("good" in (facts.get("class") or "") for _, facts in page.tags)


@pytest.mark.slow
def test_what_a_file_states_is_text_and_bounded(tmp_path: Path) -> None:
    evil = "&lt;script&gt;alert(1)&lt;/script&gt;" + "y" * 10_000
    names = (
        "type",
        "level",
        "target",
        "method",
        "reason",
        "condition-activities-from-log",
        "assumptions",
        "holds",
        "software",
    )
    said = "".join(f'<string key="privacy:{name}" value="{evil}"/>' for name in names)
    operations = "".join(f'<container key="{i}">{said}</container>' for i in range(200))
    (tmp_path / "evil.xes").write_text(
        f'<log><container key="privacy:anonymizations">{operations}</container>'
        '<trace><string key="concept:name" value="1"/><event><string key="concept:name" value="a"/></event></trace>'
        "</log>"
    )
    text = report.html(veilog.read(tmp_path / "evil.xes"))
    assert len([tag for tag, _ in Page(text).tags if tag == "script"]) == 1
    assert len(text) < 200_000
    assert "And 160 more." in text


@pytest.mark.slow
def test_sepsis_has_a_page(logs: Path) -> None:
    log = veilog.read(logs / "sepsis.xes.gz")
    released = veilog.release(log, "evolve", epsilon=1, activities="log")
    page = page_of(released, log)
    assert "1,050 before" in page.text
    assert "case disclosure: original" in page.text
    assert "Of the release it is not shown: its cases are made up of noisy answers" in page.text
    assert "Linkability" in page.text and "Inference: how a case ends, and attributes" in page.text
    assert "others' cases alone" in page.text
    assert len([1 for _, facts in page.tags if facts.get("class") == "variant"]) >= 60


@pytest.mark.nightly
def test_it_says_of_how_many_cases_durations_are_and_where_these_are_too_few(released: veilog.Release) -> None:
    """Noise makes a case or two of nothing, whose mean of months would read like a fact."""
    few = "They are too few to tell how long cases last."
    page = Page(report.html(released)).text
    assert f"These are the durations of {len(spans(released.log).first)} released cases." in page and few not in page
    one = veilog.release(
        hospital(1, seed=1), "evolve", epsilon=9, times="0.3", activities="log", seed=1, allow_no_protection=True
    )
    cases = len(spans(one.log).first)
    assert 0 < cases < FEW
    assert f"These are the durations of {cases} released case{'s' * (cases != 1)}. {few}" in Page(report.html(one)).text


def test_the_head_of_a_page_has_the_delta() -> None:
    made = veilog.release(hospital(60, seed=1), "travas", epsilon=1, delta="1e-3", activities="log")
    assert made.guarantee.delta and "δ = " in words.title_of_budget(made.guarantee)
