"""Reports: their content, what they leave out, and no way out for a log's text."""

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
from refusals import refused
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
from veilog.report.comparison import CONTROLS, attributes_shown
from veilog.report.words import chances, localise

LOG = hospital(300, seed=1)
VOID = {"meta", "img", "input", "br", "link"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; tags that do not close in order fail."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.inside: list[str] = []
        self.at: dict[str, str] = {}
        """Text of each element with an id, and of each point of what not to conclude."""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.inside.append(dict(attrs).get("id") or dict(attrs).get("data-point") or "")
            self.at.setdefault(self.inside[-1], "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.inside.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and "script" not in self.open:
            self.said.append(data)
            for name in filter(None, self.inside):
                self.at[name] = f"{self.at[name]} {' '.join(data.split())}".strip()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    def having(self, name: str) -> list[str | None]:
        """Return the values of an attribute, in the order of its elements."""
        return [facts[name] for _, facts in self.tags if name in facts]


@pytest.fixture(scope="module")
def released() -> veilog.Release:
    return veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log", seed=1)


@pytest.fixture(scope="module")
def proven() -> veilog.Release:
    return veilog.release(LOG, "travas", epsilon=1, delta="1e-4")


def page_of(released: veilog.Release | EventLog, original: EventLog | Variants | None = None) -> Page:
    return Page(report.html(released, original))


def test_it_says_what_was_released_and_what_is_guaranteed(proven: veilog.Release) -> None:
    page = page_of(proven)
    g = proven.guarantee
    for said in ("travas", words.headline(g), words.factor(1), g.protects, g.neighbours, g.numerics):
        assert localise(said) in page.text
    assert (page.having("data-status"), page.having("data-said-by")) == (["proven"], ["program"])
    assert "ε = 1, δ = 0.0001" in page.text and "2.72" in page.text
    assert "questions" in page.at and "k-truncated symmetric geometric" in page.text
    assert {"nothing-learned", "several-cases", "second-release"} < set(page.having("data-point"))
    assert page.at["count-of-cases"].startswith(f"{proven.variants.cases:,} ")


@pytest.mark.slow
def test_the_chances_follow_bayes_and_are_never_understated(proven: veilog.Release) -> None:
    # Even odds times e is a chance of e / (1 + e) = 0.73106; printed rounded up.
    assert page_of(proven).at["chances"].endswith(" 1 % 2.7 % 10 % 23.3 % 50 % 73.2 % 90 % 96.1 %")


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 1e-4), (0.1, 1e-6)])
def test_the_chances_are_means_for_the_noise_that_a_delta_buys(epsilon: float, delta: float) -> None:
    """Chances are means: with Gaussian noise odds exceed e^epsilon beyond delta."""

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
    found = re.findall(r"([\d.]+) % ([\d.]+) %", page_of(proven).at["guesses"])
    assert found == [("50", "73.2"), ("50", "81.7"), ("10", "27.2"), ("1", "2.8")]
    nothing = veilog.release(LOG, "travas", epsilon=1, delta="1e-4", seed=1)
    assert "guesses" not in page_of(nothing).at


@pytest.mark.nightly
def test_inside_it_compares_with_the_original_and_is_marked(released: veilog.Release) -> None:
    page = page_of(released, LOG)
    assert {"risk", "utility", "page-protected"} < set(page.at)
    assert {"running", "mark in"} < set(page.having("class"))
    assert "300" in page.at["count-of-cases"]
    kept = veilog.compare(LOG, released.log)
    assert kept.verdict in page.text
    assert f"{kept.relative_log_similarity:.3f}" in page.text
    assert any(tag == "img" and facts["alt"] for tag, facts in page.tags)


@pytest.mark.nightly
def test_outside_it_has_none_of_that(released: veilog.Release) -> None:
    page = page_of(released)
    assert not {"risk", "utility", "page-protected"} & set(page.at)
    assert not {"running", "mark in"} & set(page.having("class"))
    assert not any(tag == "img" for tag, _ in page.tags)
    assert "300" not in page.at["count-of-cases"]


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
    # Only numbers about activities count: that of some cases or steps may be the same by its noise.
    wide = Variants.from_dict({("arrive", "leave"): 100, **{("arrive", f"Dr. {i:03}"): 2 for i in range(300)}})
    released = veilog.release(wide, "evolve", epsilon=1, delta="1e-4", activities=activities, max_length=4)
    text = page_of(released).text
    sketches = [remark for remark in released.remarks if remark.code == "evolve-release-sketch"]
    assert [remark.values["activities"] for remark in sketches] == ([] if told is None else [told])
    assert all(str(remark) in text for remark in sketches)
    said = [sentence for sentence in re.split(r"[.;]\s", text) if re.search("activit", sentence, re.IGNORECASE)]
    assert any(re.search(r"\b302\b", sentence) for sentence in said) == (told == 302)
    # Where it is the log's own number, what makes it public stands beside it.
    assert ("(activities-from-log, " in text) == (activities == "log")


@pytest.mark.slow
def test_outside_questions_and_remarks_of_a_release_without_a_guarantee_are_left_out() -> None:
    released = veilog.release(LOG, "laplace", epsilon=1, seed=1, activities="log", depth=5)
    assert not released.guarantee.proven
    noted = replace(released, remarks=(Message("looked-at-the-log"),))
    outside, inside = page_of(noted), page_of(noted, LOG)
    assert "questions" in inside.at and "questions" not in outside.at
    assert "looked-at-the-log" in inside.text and "looked-at-the-log" not in outside.text
    assert outside.having("data-status") == ["none"]
    assert [reason.code for reason in released.guarantee.reasons] == ["noise-seeded"]
    assert str(Message("noise-seeded")) in outside.text


@pytest.mark.slow
def test_group_models_are_stated_in_their_own_words() -> None:
    released = veilog.release(LOG, "tlkc", as_published=True, k=5, l=2)
    page = page_of(released)
    assert "k-anonymity (TLKC)" in page.text
    assert page.having("data-checked") == ["yes"]
    assert "anonymous" in page.at and "second-release" not in page.at


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
        assert "×500" in page.text


@pytest.mark.nightly
def test_many_variants_are_cut_and_the_page_says_so() -> None:
    many = {("start", f"a{i % 40}", f"b{i // 40}"): 1 + i % 3 for i in range(100_000)}
    released = replace(veilog.release(LOG, "travas", epsilon=1, delta="1e-4"), variants=Variants.from_dict(many))
    text = report.html(released, LOG)
    page = Page(text)
    assert len(text) < 500_000
    assert page.at["count-of-variants"].startswith("100,000 ")
    assert {"others", "more-activities", "less-knowledge"} < set(page.at)
    assert "veilog compare" in page.at["not-compared"]


@pytest.mark.slow
def test_an_empty_release_and_one_of_empty_cases_have_a_page() -> None:
    empty = replace(veilog.release(LOG, "travas", epsilon=1, delta="1e-4"), variants=Variants.from_dict({}))
    assert "nothing" in page_of(empty).at
    assert numbers(page_of(empty, LOG).at["count-of-cases"]) == ["0", "300"]
    blank = replace(empty, variants=Variants.from_dict({(): 7}))
    assert numbers(page_of(blank).at["empty-cases"]) == ["7"]
    assert "empty-cases" not in page_of(empty).at


@pytest.mark.slow
def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, proven: veilog.Release) -> None:
    report.write(proven, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html(proven)
    with refused(OutputError, "folder-not-there"):
        report.write(proven, tmp_path / "none" / "page.html")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.slow
def test_durations_stand_where_times_were_released_and_a_reason_where_not(
    released: veilog.Release, proven: veilog.Release
) -> None:
    timed, untimed = page_of(released).at, page_of(proven).at
    assert ("durations-of" in timed, "no-durations" in timed) == (True, False)
    assert ("durations-of" in untimed, "no-durations" in untimed) == (False, True)


def test_attributes_have_a_section_and_those_of_the_original_stand_beside_them() -> None:
    before = log_with("age", [30, 40, 50, 60] * 5, "ward", ["a"] * 15 + ["b", "c", "d", "e", "f"])
    after = log_with("age", [35, 45, None, 65] * 5, "ward", ["a"] * 10 + ["b"] * 10)
    shown = {one.name: one for one in attributes_shown(after, before)}
    assert (shown["age"].of, numbers(shown["age"].released)) == ("cases", ["35", "65", "45", "25"])
    assert numbers(shown["age"].original) == ["30", "60", "40"]
    assert shown["ward"].released == "“a” (50\u202f%), “b” (50\u202f%)"
    assert shown["ward"].original.startswith("“a” (75\u202f%), “b” (5\u202f%), “c” (5\u202f%) ")
    assert numbers(shown["ward"].original) == ["75", "5", "5", "3"], "and that there are more"
    assert [one.original for one in attributes_shown(after, None)] == ["", ""]
    assert attributes_shown(None, before) == ()


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def log_with(*columns: object) -> EventLog:
    """Return twenty cases of one event, with attributes: a name, then its values."""
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
    page = page_of(read_again(proven, tmp_path))
    assert "ε = 1, δ = 0.0001" in page.text
    assert (page.having("data-status"), page.having("data-said-by")) == (["proven"], ["file"])
    assert "guarantee-checked" in page.at and "guarantee-checked" not in page_of(proven).at
    assert page.at["count-of-cases"].startswith(f"{proven.variants.cases:,} ")


@pytest.mark.slow
def test_operations_of_a_file_add_up_and_never_to_less(tmp_path: Path) -> None:
    released = veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log")
    from veilog.report.release_facts import facts_of_file

    told = facts_of_file(read_again(released, tmp_path))
    assert told.guarantee.epsilon == pytest.approx(1.0)
    assert told.guarantee.epsilon is not None
    assert told.guarantee.epsilon >= 1.0
    assert told.guarantee.guessing_advantage == released.guarantee.guessing_advantage
    assert [operation.method for operation in told.operations] == ["evolve", "times"]
    assert told.timed


def in_containers(log: EventLog) -> EventLog:
    """Return the log in the older form: containers, numbers as keys, no remarks."""

    def boxed(number: int, operation: Attribute) -> Attribute:
        return Attribute(str(number), None, "container", operation.children)

    said, *others = log.metadata.attributes
    operations = [one for one in said.children if one.children and "operation" in one.key]
    box = Attribute(said.key, None, "container", tuple(boxed(i, one) for i, one in enumerate(operations, 1)))
    return replace(log, metadata=replace(log.metadata, attributes=(box, *others)))


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("suffix", [".xes", ".parquet"])
def test_every_form_of_the_file_tells_the_same(tmp_path: Path, suffix: str) -> None:
    from veilog.report.release_facts import facts_of_file

    released = veilog.release(LOG, "evolve", epsilon=1, times="0.3", activities="log", window="log")
    told = facts_of_file(read_again(released, tmp_path))
    assert (told.guarantee.status, len(told.operations)) == ("proven", 2)
    assert set(told.guarantee.conditions) == set(released.guarantee.conditions)
    veilog.write(in_containers(released.log), tmp_path / f"before{suffix}")
    assert told.remarks == released.remarks
    assert facts_of_file(veilog.read(tmp_path / f"before{suffix}")) == replace(told, remarks=())
    released.save(tmp_path / f"now{suffix}")
    assert facts_of_file(veilog.read(tmp_path / f"now{suffix}")) == told


def test_a_log_that_says_nothing_of_privacy_is_refused(tmp_path: Path, proven: veilog.Release) -> None:
    with refused(InputError, "report-guarantee-missing"):
        report.html(LOG)
    proven.save(tmp_path / "release.csv")
    with refused(InputError, "report-guarantee-missing"):
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
    assert page.having("data-status") == ["none"]
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
    assert numbers(Page(text).at["more-operations"]) == ["160"]


@pytest.mark.slow
def test_sepsis_has_a_page(logs: Path) -> None:
    log = veilog.read(logs / "sepsis.xes.gz")
    released = veilog.release(log, "evolve", epsilon=1, activities="log")
    page = page_of(released, log)
    assert "1,050" in page.at["count-of-cases"]
    assert "not-of-release" in page.at, "disclosure is shown of the original alone"
    assert page.having("class").count("attack") == 4
    assert CONTROLS["others' cases"] in page.text
    assert len([1 for _, facts in page.tags if facts.get("class") == "variant"]) >= 60


@pytest.mark.nightly
def test_it_says_of_how_many_cases_durations_are_and_where_these_are_too_few(released: veilog.Release) -> None:
    """Durations state their number of cases, and a warning where these are too few."""
    said = page_of(released).at["durations-of"]
    many = len(spans(released.log).first)
    assert many >= FEW and numbers(said) == [str(many)]
    one = veilog.release(
        hospital(1, seed=1), "evolve", epsilon=9, times="0.3", activities="log", seed=1, allow_no_protection=True
    )
    cases = len(spans(one.log).first)
    assert 0 < cases < FEW
    few = page_of(one).at["durations-of"]
    assert numbers(few) == [str(cases)]
    assert (said.count("."), few.count(".")) == (1, 2), "a second sentence says that they are too few"


def test_the_head_of_a_page_has_the_delta() -> None:
    made = veilog.release(hospital(60, seed=1), "travas", epsilon=1, delta="1e-3", activities="log")
    assert made.guarantee.delta and "δ = " in words.title_of_budget(made.guarantee)
