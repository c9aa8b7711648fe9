"""What every method claims, what is derived and what an audit shows: docs/claims.md, made by this program.

    python bench/claims.py [--runs 20000] [--only METHOD] [--folder bench/claims]

Every cell is kept in the folder and never run again; the table is written from what is there. A cell is an audit of
``--runs`` releases of each of two neighbouring logs (fewer where a release takes long: see ``ROWS``).
"""

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilog import audit
from veilog.errors import ParameterError

PAGE = Path(__file__).parents[1] / "docs" / "claims.md"
DELTA = "1e-3"


@dataclass(frozen=True)
class Row:
    method: str
    epsilons: tuple[str, ...] = ("0.5", "2")
    delta: str = "0"
    as_published: bool = False
    share: float = 1.0
    """Of the runs: less where a release takes long."""
    more: dict[str, Any] = field(default_factory=dict)

    def name(self, epsilon: str) -> str:
        more = "".join(f"-{k}={v}" for k, v in self.more.items())
        return f"{self.method}{'-as-published' if self.as_published else ''}{more}-{epsilon}-{self.delta}".replace(
            ":", "_"
        )


ROWS = (
    Row("travas", epsilons=("0.5", "1", "2"), delta=DELTA),
    Row("utravas", delta=DELTA, more={"subqueries": 2}),
    Row("laplace"),
    Row("sacofa"),
    Row("df-laplace"),
    Row("sapa"),
    Row("evolve"),
    Row("evolve", delta=DELTA, share=0.25),
    Row("pripel", delta=DELTA, more={"query": "travas"}),
    Row("libra", delta=DELTA),
    Row("travag", delta=DELTA, share=0.1, more={"free_generator_steps": 20}),
    Row("laplace", epsilons=("0.5",), as_published=True, more={"depth": 5}),
    Row("sacofa", epsilons=("0.5",), as_published=True, more={"depth": 5}),
    Row("df-laplace", epsilons=("0.5",), as_published=True),
    Row("sapa", epsilons=("0.5",), as_published=True),
    Row("amun", epsilons=("0.5",), as_published=True, share=0.1),
    Row("sapa", epsilons=("0.5",), share=0.25, more={"activities": "log"}),
    Row("evolve", epsilons=("0.5",), share=0.25, more={"activities": "log"}),
    Row("travas", epsilons=("1",), delta=DELTA, more={"person_cases": 20}),
    Row("travas", epsilons=("1",), delta=DELTA, more={"person_cases": 20, "unit": "case:person", "max_cases": 4}),
)


PUBLISHED = """\
The papers' own calibrations, at a nominal epsilon of 0.5. Amun's guessing advantage is the one that belongs to this
epsilon. Laplace and SaCoFa are run with depth 5."""
PERSON = """\
TraVaS with and without `--unit case:person --max-cases 4`, attacked with neighbours that differ by a person with 20
cases. Without it the derived epsilon is that of one case, and a person with 20 is not what it speaks of."""


CONDITION = """\
With `--activities log` the labels of the log are taken to be public. The attack is a case with a label of its own: of
it the guarantee does not speak, which its condition `activities-from-log` says. Where the activities are declared, as
in the first table, the same attack is one of those that are tried; cells kept from before have not tried it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--only", default=None, help="a method; 'none' writes the page from what is kept")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "claims")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found, missing = [], []
    for row in ROWS:
        for epsilon in row.epsilons:
            kept = given.folder / f"{row.name(epsilon)}.json"
            if not kept.exists() and given.only in (None, row.method):
                try:
                    result = audit(
                        row.method, epsilon=epsilon, delta=row.delta, as_published=row.as_published,
                        runs=round(given.runs * row.share), seed=1, processes=given.processes, **row.more,
                    ).to_json()  # fmt: skip
                except ParameterError as error:
                    print(f"{row.name(epsilon)}: {error}", flush=True)
                    continue
                kept.write_text(json.dumps(result, indent=1))
                print(f"{kept.stem}: {result['audited_epsilon']:.3f}, {result['seconds']:.0f} s", flush=True)
            if kept.exists():
                found.append((row, json.loads(kept.read_text())))
            else:
                face = " as published" if row.as_published else ""
                missing.append(f"{row.method}{face} at {epsilon}" + (" (person)" if "person_cases" in row.more else ""))
    PAGE.write_text(page(found, missing))


def page(found: list[tuple[Row, dict[str, Any]]], missing: list[str]) -> str:
    special = ("person_cases", "activities")
    certified = [line(row, r) for row, r in found if not row.as_published and not any(k in row.more for k in special)]
    conditions = [beyond(row, r) for row, r in found if "activities" in row.more]
    published = [line(row, r) for row, r in found if row.as_published]
    people = [line(row, r) for row, r in found if "person_cases" in row.more]
    head = (
        "| method | nominal epsilon | delta | derived epsilon | audited epsilon, at least | best attack | runs |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    left = f"\nNot run yet at this length: {', '.join(missing)}.\n" if missing else ""
    labels = section("A label of its own", CONDITION, head, conditions)
    return f"""# Claims

What methods claim (*nominal*), what this program proves (*derived*) and what [audits](audits.md) show from
outside (*audited*: the true epsilon is at least so large, at 99 % confidence). The table is written by
`python bench/claims.py`; runs are releases of each of two neighbouring logs. Cells are kept and not run again when the
code changes.

## Certified releases

An audited epsilon above the derived one would be a defect. TraVaG is run with fewer of the steps that its generator
takes after the last noised answer, which cost nothing and take most of the time; its accounting is also tested
against an independent accountant, its gradients against finite differences.

{head}{"".join(certified)}
{section("As published", PUBLISHED, head, published)}{labels}{section("A person with 20 cases", PERSON, head, people)}
## What is not audited

TLKC and PRETSA make no claim about epsilon; an independent checker reads every release instead.
{left}
Audits show what these attacks can see and nothing about attacks that nobody has tried.
"""


def section(title: str, text: str, head: str, lines: list[str]) -> str:
    """A table with a heading, or nothing where it has no lines."""
    return f"## {title}\n\n{text}\n\n{head}{''.join(lines)}\n" if lines else ""


def beyond(row: Row, r: dict[str, Any]) -> str:
    """The line of what was seen where a condition does not hold."""
    seen = next(b for b in r["beyond"] if b["breaks"] == "activities-from-log")
    return line(row, r | {name: seen[name] for name in ("audited_epsilon", "attack")})


def line(row: Row, r: dict[str, Any]) -> str:
    derived = "none" if r["derived_epsilon"] is None else f"{r['derived_epsilon']:g}"
    more = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in row.more.items() if k not in ("person_cases", "depth"))
    name = r["method"] + (f" ({more})" if more else "")
    return (
        f"| {name} | {r['nominal_epsilon']:g} | {r['delta']:g} | {derived} | {r['audited_epsilon']:.3g} "
        f"| {r['attack']} | {r['runs']:,} |\n"
    )


if __name__ == "__main__":
    main()
