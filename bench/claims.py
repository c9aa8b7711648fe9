"""Claimed, derived and audited epsilon by method: the tables of docs/claims.md.

A cell is an audit of 4,000 releases of each of two neighbouring logs, or of the answers to one release's queries. Some
have more or fewer, see ``CLAIMS`` and ``WHITE``; ``--set releases=N`` sets another number.
``python bench/run.py claims --set method=NAME`` audits one method again, and ``--publish`` writes the results into the
page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from veilog.audits.attacks import Attempt
from veilog.audits.blackbox import audit
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Number, Profile, Row, Table, Value
from veilog.logs.variants import Variants

DELTA = "1e-3"
RELEASES = 4_000
FEW = 0.125
"""Share of the releases for methods that take a tenth of a second or more for each.

Even 20,000 of these show little from outside (nothing, at an epsilon of a half), and their white-box audits show more.
"""
FEW_RUNS = 400
"""Most releases that one process makes before another would have started."""
MANY = 5.0
"""Share of the releases that distinguishes what papers calibrate from what they claim."""


@dataclass(frozen=True)
class Claim:
    method: str
    epsilons: tuple[str, ...] = ("0.5", "2")
    delta: str = "0"
    as_published: bool = False
    share: float = 1.0
    """Share of the releases, less than 1 for slow methods."""
    more: dict[str, Value] = field(default_factory=dict)

    def cells(self) -> Iterator[Cell]:
        for epsilon in self.epsilons:
            face: dict[str, Value] = {"as_published": True} if self.as_published else {}
            settings = {"epsilon": epsilon, "delta": self.delta, **face, **self.more, "share": self.share}
            yield Cell("", self.method, tuple(settings.items()))


CLAIMS = (
    Claim("travas", epsilons=("0.5", "1", "2"), delta=DELTA),
    Claim("utravas", delta=DELTA, more={"subqueries": 2}),
    Claim("laplace"),
    Claim("sacofa"),
    Claim("df-laplace"),
    Claim("sapa"),
    Claim("evolve", epsilons=("2",), share=FEW),
    Claim("evolve", epsilons=("2",), delta=DELTA, share=FEW),
    Claim("pripel", epsilons=("2",), delta=DELTA, share=FEW, more={"query": "travas"}),
    Claim("libra", epsilons=("2",), delta=DELTA, share=FEW),
    Claim("travag", delta=DELTA, share=0.15, more={"free_generator_steps": 20}),
    Claim("laplace", epsilons=("0.5",), as_published=True, share=MANY, more={"depth": 5}),
    Claim("sacofa", epsilons=("0.5",), as_published=True, share=MANY, more={"depth": 5}),
    Claim("df-laplace", epsilons=("0.5",), as_published=True, share=MANY),
    Claim("sapa", epsilons=("0.5",), as_published=True, share=MANY),
    Claim("amun", epsilons=("0.5",), as_published=True, share=0.5),
    Claim("sapa", epsilons=("0.5",), share=0.5, more={"activities": "log"}),
    Claim("evolve", epsilons=("0.5",), share=FEW, more={"activities": "log"}),
    Claim("travas", epsilons=("1",), delta=DELTA, more={"person_cases": 20}),
    Claim("travas", epsilons=("1",), delta=DELTA, more={"person_cases": 20, "unit": "case:person", "max_cases": 4}),
)


_ANOTHER = "3,000 cases of one event, and one of another"


def _inside(method: str, delta: str = "0", runs: int = 1, **more: Value) -> Claim:
    """Return a white-box audit, with so many times the usual runs.

    Some methods split a budget over several queries, which must all have odd answers at once. They take more runs to
    show as much.
    """
    return Claim(method, epsilons=("1",), delta=delta, share=runs, more={"white_box": True, **more})


WHITE = (
    _inside("travas", DELTA),
    _inside("utravas", DELTA, subqueries=2),
    _inside("laplace"),
    _inside("sacofa"),
    _inside("df-laplace"),
    _inside("sapa"),
    _inside("dpim", runs=10, neighbours=_ANOTHER),  # a new case has two new pairs, which share the bound
    _inside("dpim", bound=1),
    _inside("evolve", runs=2),
    _inside("evolve", DELTA),
    _inside("evolve", runs=5, times="0.4"),
    _inside("pripel", runs=5),
    _inside("pripel", DELTA, query="travas"),
    _inside("libra"),
    _inside("travag", DELTA, free_generator_steps=1),
)

HEAD = ("method", "nominal epsilon", "delta", "derived epsilon", "audited epsilon, at least", "best attack", "runs")


def cells(profile: Profile) -> Iterator[Cell]:
    releases = int(profile.options.get("releases", 200 if profile.quick else RELEASES))
    boxes = {"white": WHITE, "black": CLAIMS, "published": tuple(claim for claim in CLAIMS if claim.as_published)}
    for claim in boxes.get(profile.options.get("box", ""), (*CLAIMS, *WHITE)):
        if profile.options.get("method", claim.method) == claim.method:
            for cell in claim.cells():
                yield Cell("", cell.method, (*cell.settings, ("releases", releases)))


def measure(given: Given, cell: Cell) -> Measured:
    settings: dict[str, Any] = dict(cell.settings)
    runs = round(settings.pop("releases") * settings.pop("share"))
    if settings.pop("neighbours", "") == _ANOTHER:
        usual = {("a",): 3000}
        other = Variants.from_dict({**usual, ("b",): 1})
        settings["pairs"] = [Attempt(_ANOTHER, Variants.from_dict(usual), other, ())]
    processes = 2 if runs > FEW_RUNS else 1
    return of_audit(audit(cell.method, runs=runs, seed=1, processes=processes, **settings).to_json())


def of_audit(found: dict[str, Any]) -> Measured:
    """Return the kept values of an audit.

    Of attacks where a condition does not hold, only the one on labels taken from the log is kept.
    """
    names = ("nominal_epsilon", "delta", "derived_epsilon", "audited_epsilon", "runs", "seconds")
    values: dict[str, Number] = {name: found[name] for name in names}
    texts = {name: str(found[name]) for name in ("attack", "score", "event", "verdict")}
    if "white_box" in found:
        values |= {name: found["white_box"][name] for name in ("factor", "free_epsilon")}
        texts["faults"] = "; ".join(found["white_box"]["faults"])
    for seen in found.get("beyond", ()):
        if seen["breaks"] == "activities-from-log":
            values["beyond"] = seen["audited_epsilon"]
            texts["beyond"] = seen["attack"]
    return Measured(values, texts=texts)


def tables(rows: Sequence[Row]) -> list[Table]:
    groups: dict[str, list[Row]] = {
        "Certified releases": [],
        "White box": [],
        "As published": [],
        "A label of its own": [],
        "A person with 20 cases": [],
    }
    wanted = {cell.key: cell for cell in cells(Profile((), 1, False))}
    places = {key: place for place, key in enumerate(wanted)}
    for row in sorted(rows, key=lambda row: places.get(row.cell.key, len(places))):
        face = "As published" if row.cell.get("as_published", False) else "Certified releases"
        face = "A label of its own" if row.cell.get("activities") else face
        face = "White box" if row.cell.get("white_box") else face
        groups["A person with 20 cases" if row.cell.get("person_cases") else face].append(row)
    left = [
        f"{cell.method} at {cell.get('epsilon')}"
        for key, cell in wanted.items()
        if key not in {r.cell.key for r in rows} and not cell.get("white_box")
    ]
    waiting = f"Not run yet at this length: {', '.join(left)}." if left else ""
    return [
        Table("White box", WHITE_HEAD, tuple(white_line(row) for row in own))
        if title == "White box"
        else Table(
            title, HEAD, tuple(line(row, title) for row in own), waiting if title == "Certified releases" else ""
        )
        for title, own in groups.items()
        if own or title != "White box"
    ]


WHITE_HEAD = ("method", "delta", "derived epsilon", "audited epsilon, at least", "without the shape", "faults", "runs")


def white_line(row: Row) -> tuple[str, ...]:
    """Return a method's line at epsilon 1: derived, and as its answers show."""
    name, _, derived, audited, _, runs = (line(row, "")[i] for i in (0, 2, 3, 4, 5, 6))
    free = f"{row.get('free_epsilon') or 0:.3g}"
    return (name, f"{row.get('delta') or 0:g}", derived, audited, free, row.texts.get("faults") or "none", runs)


def line(row: Row, title: str) -> tuple[str, ...]:
    hidden = ("epsilon", "delta", "as_published", "share", "releases", "person_cases", "depth", "white_box")
    more = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in row.cell.settings if name not in hidden)
    which = ("beyond", "beyond") if title == "A label of its own" else ("audited_epsilon", "attack")
    derived = row.get("derived_epsilon")
    return (
        row.cell.method + (f" ({more})" if more else ""),
        f"{row.get('nominal_epsilon') or 0:g}",
        f"{row.get('delta') or 0:g}",
        "none" if derived is None else f"{derived:g}",
        f"{row.get(which[0]) or 0:.3g}",
        row.texts.get(which[1], "-"),
        f"{row.get('runs') or 0:,.0f}",
    )


BENCHMARKS = (
    Experiment(
        name="claims",
        what="What methods claim, what is derived, and what audits show from outside.",
        cells=cells,
        measure=measure,
        tables=tables,
        methods=tuple(dict.fromkeys(claim.method for claim in CLAIMS)),
        runs=1,
        small=Profile((), 1, True, {"method": "sapa", "box": "published", "releases": "24"}),
        page="claims.md",
    ),
)
