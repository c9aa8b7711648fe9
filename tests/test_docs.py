"""The docs are true: commands, options, methods, parameters, and the tutorial."""

import ast
import dataclasses
import importlib.util
import inspect
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args, get_type_hints

import pytest
from cyclopts import Parameter

import veilog
from veilog import METHODS, cli
from veilog.ledger import rules
from veilog.logs.input import quality_checks, source
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.logs.tables import excel, table_reader
from veilog.measures import MEASURES
from veilog.methods import _sampling
from veilog.methods._events.times import calendar
from veilog.methods.benchmark_facts import ahead_in, measured
from veilog.methods.evolve.constants import Constants
from veilog.methods.travag import private_training
from veilog.privacy import histograms, unit
from veilog.privacy.account.guarantee import STRENGTHS, Code, strength_of, up
from veilog.privacy.account.guessing_advantage import epsilon_of
from veilog.releasing.checks import meaning_of_pairs
from veilog.web.work import release_job

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLES = tool("tables")
COMMANDS = TABLES.commands(cli.application(whole=True))


def options(command: str) -> set[str]:
    function = COMMANDS[command].default_command
    hints = get_type_hints(function, include_extras=True)
    found = set()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        if dataclasses.is_dataclass(hints[name]):  # a group of options, such as cli.Reading
            found.update("--" + field.name.strip("_").replace("_", "-") for field in dataclasses.fields(hints[name]))
            continue
        told = [a for a in get_args(hints[name]) if isinstance(a, Parameter)]
        names = [n for p in told for n in (p.name or ())] or ["--" + name.replace("_", "-")]
        found.update(names)
    return found


@pytest.mark.slow
def test_the_tables_of_the_docs_are_those_of_the_code() -> None:
    assert sorted(TABLES.stale()) == [], "make tables"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLES.TABLES))
def test_a_table_that_the_code_gives_is_written_between_its_marks(name: str) -> None:
    where, table = TABLES.TABLES[name]
    page = (DOCS / where).read_text()
    changed = page.replace(table(), table().replace("|", "| x", 1))
    assert changed != page
    assert TABLES.written(changed, name, table()) == page
    with pytest.raises(SystemExit):
        TABLES.written(page.replace(f"<!-- make tables: {name} -->", ""), name, table())


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_and_option_is_documented(command: str) -> None:
    """Every option is in the command's own table, or in that of a group it names."""
    page = (DOCS / "command.md").read_text()
    own = page.partition(f"### veilog {command}\n")[2].partition("\n### ")[0]
    assert f"`veilog {command}" in own
    groups = re.findall(r"\[([^]]+)\]\(#options-for-", own)
    own += "".join(page.partition(f"### Options for {group}\n")[2].partition("\n### ")[0] for group in groups)
    assert {option for option in options(command) - {"--json"} if f"`{option}`" not in own} == set()


@pytest.mark.parametrize("name", sorted(name for name, method in METHODS.items() if not method.package))
def test_every_method_and_parameter_has_its_page(name: str) -> None:
    pages = [p.read_text() for p in (DOCS / "methods").glob("*.md")]
    own = [text for text in pages if re.search(rf"^#.*(^|[ ,]){re.escape(name)}(,|$)", text, re.MULTILINE)]
    assert len(own) == 1, f"one page has {name} in its title"
    missing = [p.name for p in METHODS[name].parameters if f"`{p.name}`" not in own[0]]
    assert not missing
    assert "as published" in own[0].lower()


def anchors(page: Path) -> set[str]:
    """Return the anchors of headings: small letters, hyphens for spaces, only _."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.+?) *$", prose, re.MULTILINE)
    named = re.findall(r"^\(([\w-]+)\)=$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles} | set(named)


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
    links = [(page, *found) for page in pages for found in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)", page.read_text())]
    here = [
        (page, page.parent / target if target else page, anchor)
        for page, target, anchor in links
        if "://" not in target
    ]
    assert [(page.name, target.name) for page, target, _ in here if not target.exists()] == []
    to_headings = [(page, target, anchor) for page, target, anchor in here if anchor and target.suffix == ".md"]
    assert len(to_headings) >= 100
    assert [(page.name, target.name, to) for page, target, to in to_headings if to not in anchors(target)] == []


def run_blocks(page: Path, least: int, names: dict[str, object] | None = None) -> None:
    """Run the sh and python blocks of a page in order, with the lines of veilog alone."""
    names = {} if names is None else names
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    for language, text in blocks:
        if language == "python":
            exec(text, names)
            continue
        for line in text.replace("\\\n", " ").strip().splitlines():
            program, *arguments = shlex.split(line, comments=True)
            assert program in ("veilog", "make", "pip")
            if program == "veilog":
                assert cli.main(arguments) == 0, line


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS / "tutorial.md", 8)


IN_THE_BROWSER = {"account-in-the-browser"}
"""Pages about clicks: there is nothing to type, and tests/web covers them."""
HOW_TO = [page for page in sorted((DOCS / "how-to").glob("*.md")) if page.stem not in IN_THE_BROWSER]


@pytest.mark.nightly(but=1)
@pytest.mark.filterwarnings("ignore")  # pm4py and its imports raise warnings of their own
@pytest.mark.parametrize("page", HOW_TO, ids=lambda p: p.stem)
def test_the_how_to_pages_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """The how-to pages run as they stand, and their tables are what their code prints."""
    monkeypatch.setenv("VEILOG_LEDGER", str(tmp_path / "veilog.ledger"))
    for needed in ("pandas", "pm4py"):
        if f"import {needed}" in page.read_text():
            pytest.importorskip(needed)
    if "sepsis.xes.gz" in page.read_text():
        (tmp_path / "sepsis.xes.gz").symlink_to(request.getfixturevalue("logs") / "sepsis.xes.gz")
    monkeypatch.chdir(tmp_path)
    run_blocks(page, 1)
    told = capsys.readouterr().out
    for table in re.findall(r"<!-- python docs/how-to/.*? -->\n\n(.*?)\n\n<!-- end -->", page.read_text(), re.DOTALL):
        assert f"{table}\n" in told, "the page's own code prints it"


PAGES = [*DOCS.glob("*.md"), *(DOCS / "methods").glob("*.md"), *(DOCS / "measures").glob("*.md")]
ELSEWHERE = {"tutorial", "models"}
"""Pages not run: the tutorial has its own test, and the models' blocks never end."""
WITH_BLOCKS = [p for p in PAGES if re.search(r"^```(sh|python)$", p.read_text(), re.MULTILINE)]


@pytest.mark.nightly
@pytest.mark.parametrize("page", sorted(p for p in WITH_BLOCKS if p.stem not in ELSEWHERE), ids=lambda p: p.stem)
def test_what_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run, with a log under its names and a user's ledger."""
    monkeypatch.setenv("VEILOG_LEDGER", str(tmp_path / "veilog.ledger"))
    monkeypatch.chdir(tmp_path)
    log = hospital(1000, seed=1)  # with 300 cases one release by sacofa in 250 came out empty
    for name in ("hospital.xes", "log.xes", "large.parquet"):
        veilog.write(log, name)
    Path("activities.txt").write_text("\n".join(ACTIVITIES))
    run_blocks(page, 1, {"veilog": veilog, "log": log, "activities": ACTIVITIES})


def test_codes_of_the_troubles_are_those_of_messages() -> None:
    known = set(re.findall(r'^msgid "([a-z0-9-]+)"$', (ROOT / "src/veilog/_language/en.po").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| (`[^|]+) \|", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    codes = [code for row in rows for code in re.findall(r"`([a-z0-9-]+)`", row)]
    assert len(codes) >= 25
    assert [code for code in codes if code not in known] == []


LIMITS = {
    "activities, for evolve": Constants().most_activities,
    "different activities of a case, with `--activities privately`": histograms.MOST,
    "attributes of a log": quality_checks.MOST_COLUMNS,
    "a text, a name or a value": source.MAX_VALUE >> 20,
    "unpacked size of a compressed log": source.DEFAULT_LIMIT >> 30,
    "events in memory (amun, pripel, libra, tlkc, pretsa; tables of engines)": table_reader.LARGE,
    "events of a generated log, held in memory": _sampling.LARGEST_RELEASE,
    "events of an Excel sheet": excel.MOST_EVENTS,
    "events of a workbook on the pages": release_job._WORKBOOK,
    "starts in a window": calendar.MOST_WEEKS,
    "variants that travag is trained on": private_training.MOST_COLUMNS,
    "cases per person": unit.MOST_CASES,
    "releases of a plan": rules.MOST_RELEASES,
}


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_is_that_of_the_code(what: str) -> None:
    (limit,) = re.findall(rf"^\| {re.escape(what)} \| ([\d,]+)", (DOCS / "limits.md").read_text(), re.MULTILINE)
    assert int(limit.replace(",", "")) == LIMITS[what]


def test_every_condition_is_documented() -> None:
    text = (DOCS / "guarantees.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \|", text.partition("## Conditions")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(get_args(Code))


def test_the_borders_of_strength_are_those_of_the_code() -> None:
    text = (DOCS / "guarantees.md").read_text().partition("## What a guarantee is worth")[2]
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d.]*) \| ([\d.]*) \| ([\d.]*) \|$", text, re.MULTILINE)
    assert tuple(word for word, *_ in rows) == STRENGTHS[:-1]
    for place, (word, advantage, epsilon, exposed) in enumerate(rows):
        assert strength_of(float(advantage)) == word
        assert strength_of(float(advantage) + 1e-9) == STRENGTHS[place + 1]
        assert float(epsilon) == round(float(epsilon_of(advantage)), 2)
        assert strength_of(float(advantage), float(exposed) / 1000, 1000) == word
        assert STRENGTHS.index(strength_of(0.0, float(exposed) * 1.001 / 1000, 1000)) > place


def test_the_table_of_guesses_is_that_of_the_code() -> None:
    text = (DOCS / "guessing.md").read_text().partition("## What an adversary can guess")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\d.]+) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) == 5
    for epsilon, told in rows:
        found = meaning_of_pairs([(float(epsilon), 0.0)])
        guess = found.guess_at_prior
        numbers = found.membership_test_gap, found.tpr_at_fpr[0.01], found.presence, guess[0.5], guess[0.1], guess[0.01]
        assert told.split(" | ") == [up(number, 3) for number in numbers]


CASES = {
    "sepsis": 1050,
    "receipt": 1434,
    "unrineweginfectie": 1650,
    "bpic2013_incidents": 7554,
    "traffic_fines": 150370,
}


def test_what_pages_say_of_the_frontier_is_what_was_measured() -> None:
    assert f"mean in {ahead_in('evolve')}\n" in (DOCS / "results/frontier.md").read_text()
    assert f"in {ahead_in('evolve')} [measured]" in (DOCS / "how-to/choose-a-method.md").read_text()
    page = " ".join((DOCS / "suggest.md").read_text().split())
    assert re.findall(r"\d+ of \d+", page)[:3] == [ahead_in(method) for method in ("evolve", "pripel", "libra")]
    reached = [
        (float(epsilon) * CASES[log], similarity)
        for log in CASES
        for epsilon, similarity in measured().similarity["evolve"][log].items()
    ]
    page = (DOCS / "how-to/choose-epsilon.md").read_text()
    ranges = re.findall(r"^\| ([\d,]+) to ([\d,]+) \| ([\d.]+) .*?to ([\d.]+)", page, re.MULTILINE)
    assert len(ranges) == 3
    for least, most, *said in ranges:
        low, high = (int(number.replace(",", "")) for number in (least, most))
        found = [similarity for size, similarity in reached if low <= size <= high + 0.5]
        assert [float(number) for number in said] == [round(min(found), 2), round(max(found), 2)]


def test_what_a_page_says_of_prediction_is_what_its_table_has() -> None:
    page = (DOCS / "measures" / "use-cases.md").read_text()
    rows = re.findall(r"^\| (\w+) \| evolve \| 1 \|  \| ([^\n]+) \|$", page, re.MULTILINE)
    kept = {log: round(float(found[1]) / float(found[0]), 2) for log, found in numbers(rows).items()}
    said = re.search(r"evolve keeps ([\d.]+) \(Sepsis\), ([\d.]+) \(Receipt\) and ([\d.]+) \(BPIC13\)", page)
    assert said is not None
    assert kept == dict(zip(("sepsis", "receipt", "bpic2013_incidents"), map(float, said.groups()), strict=True))


def numbers(rows: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the n-gram's results by log, learnt from real cases and from a release."""
    cells = {log: [cell.partition(" ±")[0] for cell in text.split(" | ")] for log, text in rows}
    return {log: found[2:4] for log, found in cells.items() if len(found) == 8}


@pytest.mark.slow
def test_the_kernel_is_as_long_as_the_architecture_says() -> None:
    lines = code = 0
    for module in (ROOT / "src/veilog/privacy").rglob("*.py"):
        text = module.read_text()
        told = {
            line
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        rows = [row.strip() for row in text.splitlines()]
        lines += len(rows)
        code += sum(bool(row) and row[0] != "#" and number not in told for number, row in enumerate(rows, 1))
    page = (DOCS / "architecture.md").read_text()
    said = re.search(r"The kernel has about ([\d,]+) lines .* and ([\d,]+) of code", page)
    assert said is not None
    assert [int(number.replace(",", "")) for number in said.groups()] == pytest.approx([lines, code], rel=0.05)


def test_python_of_the_docs_ends() -> None:
    """The Python of the docs ends, though models can draw cases without end."""
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            assert not re.search(r"for .* in \w+\.traces\(\)", block), page
            assert not re.search(r"\d{3}_?000_?000\b", block), page


@pytest.mark.slow
def test_what_the_json_of_a_release_holds_is_documented() -> None:
    made = veilog.release(hospital(100, seed=1), "evolve", epsilon=1, activities="log").to_json()
    section = (DOCS / "command.md").read_text().partition("## What the JSON holds")[2].partition("\n## ")[0]
    fields = {*made, *made["guarantee"], *made["guarantee"]["conditions"][0], *made["owner_only"]}
    fields |= {*made["guarantee"]["means"]}
    assert [name for name in sorted(fields) if f"`{name}`" not in section] == []


@pytest.mark.parametrize("name", [name for name in MEASURES if not MEASURES.added_by(name)])
def test_every_measure_is_documented(name: str) -> None:
    """Every measure has a table with its numbers and their better values."""
    measure, page = MEASURES[name], (DOCS / "measures" / "compare.md").read_text()
    assert f"`{name}" in page
    for quantity in measure.quantities:
        assert TABLES.number(measure, quantity) in page.splitlines()


def test_the_public_face_is_in_the_reference() -> None:
    page = (DOCS / "reference.md").read_text()
    named = re.findall(r"^\.\. (?:auto\w+|py:data):: (?:veilog\.)?(\w+)", page, re.MULTILINE)
    assert set(named) == set(veilog.__all__)
