"""Write the tables of the docs that come from the code, such as those of commands.

    python tools/tables.py            write them into docs
    python tools/tables.py --check    report those that differ from the code; status 1 if there is one

A table stands between ``<!-- make tables: NAME -->`` and ``<!-- end -->``, and is never edited.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

from cyclopts import App, Parameter

from veilog import cli
from veilog.cli.shared.requests import ReleaseOptions, TrainOptions
from veilog.experiments import EXPERIMENTS
from veilog.logs.findings import RULES
from veilog.measures import MEASURES, Measure, Quantity
from veilog.measures.use_cases import USE_CASES
from veilog.methods import METHODS
from veilog.privacy.account.guarantee import ADVANTAGES, EXPOSED, STRENGTHS, up
from veilog.privacy.account.guessing_advantage import epsilon_of
from veilog.releasing.checks import VERDICTS, VERIFIED_BY, meaning_of_pairs
from veilog.report.dossier import DossierTable, part

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SHARED = {
    "Reading": "reading a log",
    "Grouping": "grouping large tables",
    "Keeping": "the ledger",
    "TrainOptions": "the budget, the public facts and the unit",
}
"""Groups of options that several commands have, and their purposes."""
MOST_CHOICES = 6
"""Most choices that a row lists; beyond, the page refers to the list."""


def commands(app: App, before: str = "") -> dict[str, App]:
    """Return all commands of the program, with the commands below others."""
    found = {}
    for name, command in app._commands.items():
        if name.startswith("-"):
            continue
        own = commands(command, f"{before}{name} ")
        found.update(own if command.default_command is None else {before + name: command} | own)
    return found


def option(name: str, hint: Any) -> str:
    """Return the row of an option: its names and its help."""
    told = [part for part in get_args(hint) if isinstance(part, Parameter)]
    names = [found for part in told for found in (part.name or ())] or ["--" + name.replace("_", "-")]
    no = [found for part in told for found in (part.negative or ()) if isinstance(found, str)]
    said = next((part.help for part in told if part.help), "")
    # A "-" that stands for standard input, and no rule of a table.
    said = re.sub(r"(?<= )- ?(?=[,.;]|$)", "`-`", said).replace("|", "\\|").replace("*", "\\*")
    return f"| {' '.join(f'`{found}`' for found in (*names, *no))} | {said} |"


def group(kind: type) -> list[str]:
    hints = get_type_hints(kind, include_extras=True)
    shared = {field.name for field in dataclasses.fields(TrainOptions)} if kind is ReleaseOptions else set()
    return [option(field.name, hints[field.name]) for field in dataclasses.fields(kind) if field.name not in shared]


def anchor(title: str) -> str:
    return re.sub(r"[^a-z- ]", "", title.lower()).replace(" ", "-")


def command(name: str, app: App) -> list[str]:
    """Return the section of a command: its call, its description and its options."""
    function: Any = app.default_command
    hints = get_type_hints(function, include_extras=True)
    called, rows, also = [f"veilog {name}"], [], []
    for given, parameter in inspect.signature(function).parameters.items():
        hint = hints[given]
        if given == "json":  # every command has it, and the page mentions it once
            continue
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            called.append(given.upper() if parameter.default is inspect.Parameter.empty else f"[{given.upper()}]")
        elif dataclasses.is_dataclass(hint) and hint.__name__ in SHARED:  # type: ignore[union-attr]
            also.append(f"[{SHARED[hint.__name__]}](#{anchor(f'Options for {SHARED[hint.__name__]}')})")  # type: ignore[union-attr]
        else:
            if hint is ReleaseOptions:  # a training shares these, and one table lists them
                title = SHARED["TrainOptions"]
                also.append(f"[{title}](#{anchor(f'Options for {title}')})")
            rows += group(hint) if dataclasses.is_dataclass(hint) else [option(given, hint)]  # type: ignore[arg-type]
    said = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    lines = [f"### veilog {name}", "", f"`{' '.join(called)}`. {said}", ""]
    if also:
        lines += [f"Also the options for {', '.join(also[:-1]) + ' and ' if also[1:] else ''}{also[-1]}.", ""]
    return [*lines, *(["| option | what it says |", "|---|---|", *rows, ""] if rows else [])]


def command_page() -> str:
    """Return every command and option; shared options have tables of their own."""
    found = commands(cli.application(whole=True))
    lines = [line for name, app in found.items() for line in command(name, app)]
    kinds = {
        hint.__name__: hint
        for app in found.values()
        for hint in get_type_hints(app.default_command, include_extras=True).values()
        if dataclasses.is_dataclass(hint) and hint.__name__ in SHARED  # type: ignore[union-attr]
    }
    for name, title in SHARED.items():
        lines += [f"### Options for {title}", "", "| option | what it says |", "|---|---|", *group(kinds[name]), ""]
    return "\n".join(lines).strip()


def findings() -> str:
    """Return the rules of readers, with their policies."""
    lines = ["| rule | what it is | default | others | then |", "|---|---|---|---|---|"]
    for rule in RULES.values():
        others = ", ".join(policy for policy in rule.policies if policy != rule.default)
        lines.append(f"| `{rule.name}` | {rule.what} | {rule.default} | {others} | {rule.advice} |")
    return "\n".join(lines)


def number(measure: Measure, quantity: Quantity) -> str:
    """Return the row of one number of a measure."""
    key = f"{measure.name}.{quantity.of}" if quantity.of else measure.name
    low, high = f"{quantity.low:g}", "" if quantity.high == math.inf else f" to {quantity.high:g}"
    best = "" if quantity.best is None else f"{quantity.best:g}"
    needs = f"{measure.needs}, extra `{measure.extra}`" if measure.extra else measure.needs
    values = low + high if high else f"from {low}"
    # A meaning that holds numbers of two logs has none to show here.
    meaning = "" if "{" in quantity.meaning else quantity.meaning
    what = ": ".join(part.strip() for part in (quantity.title, meaning) if part)
    return f"| `{key}` | {what} | {quantity.better} | {values} | {best} | {quantity.unit or '-'} | {needs} |"


def measures() -> str:
    """Return the numbers of our measures: better values, ranges and requirements."""
    own = [measure for name, measure in MEASURES.items() if not MEASURES.added_by(name)]
    lines = ["| number | what it is | better | values | equal logs | unit | needs |", "|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [number(measure, quantity) for measure in own for quantity in measure.quantities])


def fields() -> str:
    """Return the fields in the JSON of each command, by its schema."""
    lines = ["| schema | fields |", "|---|---|"]
    for path in sorted((DOCS / "schemas").glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        lines.append(f"| [{path.stem.replace('-', ' ')}](schemas/{path.name}) | {names(found)} |")
    return "\n".join(lines)


def names(schema: dict[str, Any]) -> str:
    """Return an object's field names, each with those inside it but for intervals."""
    found = []
    for name, inner in schema.get("properties", {}).items():
        within = names(inner.get("items", inner) if isinstance(inner.get("items", {}), dict) else inner)
        interval = within == "`value`, `low`, `high`"
        found.append(f"`{name}`" + (f" ({within})" if within and not interval else ""))
    return ", ".join(found)


def experiments() -> str:
    """Return the tables and figures of papers that veilog can reproduce, with logs."""
    lines = ["| name | what | logs of the paper |", "|---|---|---|"]
    for name, one in EXPERIMENTS.items():
        logs = ", ".join(f"`{log}`" for log in one.logs) or "every log in the folder"
        lines.append(f"| `{name}` | {one.what} | {logs} |")
    return "\n".join(lines)


def strengths() -> str:
    """Return the levels' borders: guessing advantage, epsilon that reaches it, delta."""
    reached = "guessing advantage at most | which a pure epsilon reaches at"
    lines = [f"| level | {reached} | delta times cases of the log at most |", "|---|---|---|---|"]
    for word, advantage, exposed in zip(STRENGTHS, ADVANTAGES, EXPOSED, strict=False):
        lines.append(f"| {word} | {advantage:g} | {float(epsilon_of(str(advantage))):.2f} | {exposed:g} |")
    return "\n".join([*lines, f"| {STRENGTHS[-1]} | | | |"])


def chances() -> str:
    """Return the borders as changes of an even chance, for the choice of an epsilon."""
    lines = [
        "| level | guessing advantage up to | epsilon up to | a chance of 1/2 becomes at most |",
        "|---|---|---|---|",
    ]
    for word, advantage in zip(STRENGTHS, ADVANTAGES, strict=False):
        epsilon = float(epsilon_of(str(advantage)))
        lines.append(f"| {word} | {advantage:g} | {epsilon:.2f} | {1 / (1 + math.exp(-epsilon)):.2f} |")
    return "\n".join([*lines, f"| {STRENGTHS[-1]} | | above {float(epsilon_of(str(ADVANTAGES[-1]))):.2f} | |"])


def advantages() -> str:
    """Return the epsilon of some guessing advantages, rounded down."""
    asked = ("0.01", "0.05", "0.1", "0.2", "0.3", "0.4")
    down = [f"{math.floor(float(epsilon_of(advantage)) * 1e4) / 1e4:.4f}" for advantage in asked]
    return "\n".join(
        [
            f"| guessing advantage | {' | '.join(asked)} |",
            "|---" * 7 + "|",
            f"| epsilon (rounded down) | {' | '.join(down)} |",
        ]
    )


def guesses() -> str:
    """Return an adversary's guessing advantage at some epsilons, rounded up."""
    columns = "right yeses at 1 % wrong | whether it is in the log, from 50 % | one of 2 values, from 50 %"
    head = f"| epsilon | `membership_test_gap` | {columns} | one of 10, from 10 % | one of 100, from 1 % |"
    lines = [head, "|---" * 7 + "|"]
    for epsilon in (0.1, 0.4, 1, 2.2, 3.89):
        found = meaning_of_pairs([(epsilon, 0.0)])
        guess = found.guess_at_prior
        told = (found.membership_test_gap, found.tpr_at_fpr[0.01], found.presence, guess[0.5], guess[0.1], guess[0.01])
        lines.append(f"| {epsilon:g} | {' | '.join(up(number, 3) for number in told)} |")
    return "\n".join(lines)


def use_cases() -> str:
    """Return the numbers by which each use case judges a release; chief ones decide."""
    lines = ["| use_case | number | what it is | better | unit |", "|---|---|---|---|---|"]
    for name, use_case in USE_CASES.items():
        if USE_CASES.added_by(name):
            continue
        for aspect in use_case.aspects:
            chief = " (chief)" if aspect.chief else ""
            told = f"{aspect.heading}: {aspect.explanation}"
            lines.append(f"| {name} | `{aspect.name}`{chief} | {told} | {aspect.better} | {aspect.unit or '-'} |")
    return "\n".join(lines)


def methods() -> str:
    """Return the results and guarantee of each of our own methods."""
    lines = ["| method | releases | budget | certified | as published |", "|---|---|---|---|---|"]
    pages = {name: page for page, names in pages_of_methods().items() for name in names}
    for name, method in METHODS.items():
        if method.package:
            continue
        link = f"[{name}](../methods/{pages[name]})"
        told = method.to_json()
        row = (told["releases"], told["budget"], told["guarantee"], told["as_published"])
        lines.append(f"| {link} | {' | '.join(row)} |")
    return "\n".join(lines)


def pages_of_methods() -> dict[str, list[str]]:
    """Return the pages of methods, and our methods in the title of each."""
    own = [name for name, method in METHODS.items() if not method.package]
    found = {}
    for page in sorted((DOCS / "methods").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").split(", ")
        if names := [name for name in own if name in title]:
            found[page.name] = names
    return found


def parameters(names: list[str]) -> str:
    """Return the settings of methods that share a page, as the code declares them."""
    lines = ["| parameter | what it says | default |", "|---|---|---|"]
    for told in (told for name in names for told in METHODS[name].parameters):
        named = all(re.search(rf"\b{choice}\b", told.what) for choice in told.choices)
        choices = "" if named or len(told.choices) > MOST_CHOICES else f" (`{'`, `'.join(told.choices)}`)"
        lines.append(f"| `{told.name}` | {told.what}{choices} | {default_of(told.default)} |")
    return "\n".join(lines)


def default_of(value: Any) -> str:
    """Return the default of a setting for people, empty if the method finds one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def questions() -> str:
    """Return the questions that a dossier answers, and their places."""
    lines = ["| question | asked by | section |", "|---|---|---|"]
    tables = [block for block in part("questions", {}).sections[0].blocks if isinstance(block, DossierTable)]
    return "\n".join(lines + [f"| {' | '.join(row[1:])} |" for table in tables for row in table.rows])


def ticks() -> str:
    """Return ticked statements and verdicts, with the function that decides each."""
    lines = ["| code | ticked or judged | by |", "|---|---|---|"]
    lines += [f"| `{code}` | ☑ | `{function}` |" for code, function in VERIFIED_BY.items()]
    return "\n".join(
        [*lines, *(f"| `{code}` | {what} | `{function}` |" for code, (what, function) in VERDICTS.items())]
    )


def messy() -> str:
    """Return the messy files that the tests read, and their outcomes."""
    sys.path.insert(0, str(ROOT / "tests" / "_support"))
    from messy import MESSY

    files: list[str] = [mess.row for mess in MESSY]
    return "\n".join(["| file | to be told | what is said | what is kept |", "|---|---|---|---|", *files])


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("command.md", command_page),
    "fields": ("command.md", fields),
    "findings": ("formats.md", findings),
    "experiments": ("experiments.md", experiments),
    "strengths": ("guarantees.md", strengths),
    "advantages": ("guessing.md", advantages),
    "guesses": ("guessing.md", guesses),
    "chances": ("how-to/choose-epsilon.md", chances),
    "measures": ("measures/compare.md", measures),
    "use_cases": ("measures/use-cases.md", use_cases),
    "methods": ("how-to/choose-a-method.md", methods),
    "questions": ("dossier.md", questions),
    "ticks": ("architecture.md", ticks),
    "messy files": ("how-to/messy-files.md", messy),
    **{
        f"parameters of {page.removesuffix('.md')}": (f"methods/{page}", partial(parameters, names))
        for page, names in pages_of_methods().items()
    },
}


def written(page: str, name: str, table: str) -> str:
    """Return a page with a table between its marks."""
    begin = f"<!-- make tables: {name} -->"
    found = re.compile(re.escape(begin) + r".*?<!-- end -->", re.DOTALL)
    if Counter(found.findall(page)).total() != 1:
        raise SystemExit(f"One page has {begin} once.")
    return found.sub(lambda _: f"{begin}\n\n{table}\n\n<!-- end -->", page)


def stale() -> dict[str, str]:
    """Return the pages with a table that differs from the code, in their new form."""
    pages = {where: (DOCS / where).read_text(encoding="utf-8") for where, _ in TABLES.values()}
    made = dict(pages)
    for name, (where, table) in TABLES.items():
        made[where] = written(made[where], name, table())
    return {where: page for where, page in made.items() if page != pages[where]}


def main() -> int:
    found = stale()
    if "--check" in sys.argv[1:]:
        print("\n".join(f"docs/{where}: make tables" for where in found) or "all are as the code is")
        return 1 if found else 0
    for where, page in found.items():
        (DOCS / where).write_text(page, encoding="utf-8")
        print(f"written: docs/{where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
