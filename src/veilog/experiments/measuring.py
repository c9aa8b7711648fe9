"""The measurements that several experiments share: make a seeded release and compare it with its original."""

from __future__ import annotations

from typing import Any

from veilog.errors import VeilogError
from veilog.experiments.experiment import Cell, Given, Measured, Number
from veilog.logs.variants import Variants
from veilog.measures.process_model.measure import MEASURES, model_quality
from veilog.measures.similarity.difference import absolute_log_difference
from veilog.measures.similarity.measure import relative_log_similarity
from veilog.methods import METHODS
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.result import Release
from veilog.releasing.run import release

__all__ = ["EMPTY", "PREFIXES", "certainty", "heat_map_cell", "models", "released", "utility"]

EMPTY = "Nothing was released."
PREFIXES = 100
"""From so many prefixes precision is estimated where all of them take too long, and in quick profiles."""


def released(given: Given, cell: Cell) -> Release:
    """The cell's release, seeded by its run."""
    settings: dict[str, Any] = dict(cell.settings)
    log = given.log if METHODS[cell.method].full_log else given.log.variants
    return release(log, cell.method, seed=cell.run, domain=ALL_FROM_LOG, **settings)


def utility(original: Variants, made: Variants, *, difference: bool = True) -> dict[str, Number]:
    """Relative log similarity, and absolute log difference with the buffer of the published heat maps."""
    values: dict[str, Number] = {
        "similarity": relative_log_similarity(original, made).value,
        "size_ratio": made.cases / original.cases,
        "variants": len(made),
    }
    if difference:
        values["difference"] = int(absolute_log_difference(original, made, buffer="maximum").value)
    return values


def certainty(original: Variants, release: Release) -> dict[str, Number]:
    """Shares of the released cases: those whose variant the release says is certain to be real, and those whose variant
    is, which only the owner of the log can tell."""
    cases, existing = release.variants.cases, original.to_dict()
    real = sum(count for variant, count in release.variants.to_dict().items() if variant in existing)
    said = next((r for r in release.remarks if "certain to be real, for" in r), "for 0 cases").partition("for ")[2]
    every = release.method in ("travas", "utravas") or any(
        "Every released variant is cer" in r for r in release.remarks
    )
    certain = cases if every else int(said.partition(" cases")[0])
    return {"real": real / cases, "certain": certain / cases} if cases else {"real": 0.0, "certain": 0.0}


def models(original: Variants, made: Variants, cell: Cell) -> tuple[dict[str, Number], str | None]:
    """Quality of the model discovered from the release, or why there is none.

    Where precision on all prefixes takes too long it is estimated, which the remark says.
    """
    try:
        quality = model_quality(original, made, seconds=cell.models, prefixes=cell.prefixes or None)
        remark = next((f"{name}: {why}" for name, why in quality.not_computed.items()), None)
        if quality.precision is None and quality.fitness is not None and not cell.prefixes:
            again = model_quality(original, made, seconds=cell.models, prefixes=PREFIXES)
            if again.precision is not None:
                quality = again
                remark = f"precision: estimated from {PREFIXES} prefixes; all of them took over {cell.models:g} s."
    except VeilogError as error:
        return dict.fromkeys(MEASURES), str(error)
    return {name: getattr(quality, name) for name in MEASURES}, remark


def heat_map_cell(given: Given, cell: Cell) -> Measured:
    """Similarity and difference, and fitness and precision where models are wanted."""
    made = released(given, cell).variants
    if made.events == 0:
        return Measured({}, EMPTY)
    original = given.log.variants
    values = utility(original, made)
    problem = None
    if cell.models:
        more, problem = models(original, made, cell)
        values.update(more)
    return Measured(values, problem)
