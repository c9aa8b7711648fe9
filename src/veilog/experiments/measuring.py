"""The measurements that several experiments share: make a seeded release and compare it with its original."""

from __future__ import annotations

from typing import Any

from veilog.errors import VeilogError
from veilog.experiments.experiment import Cell, Given, Number
from veilog.logs.variants import Variants
from veilog.measures import MEASURES, Measure, Pair
from veilog.measures.process_model import MEASURES as OF_MODELS
from veilog.measures.process_model import model_quality
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.methods import METHODS
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.releasing.result import Release
from veilog.releasing.run import release

__all__ = ["EMPTY", "PREFIXES", "added_columns", "certainty", "models", "released", "utility"]

EMPTY = "Nothing was released."
PREFIXES = 100
"""From so many prefixes precision is estimated where all of them take too long, and in quick profiles."""


def released(given: Given, cell: Cell) -> Release:
    """The cell's release, seeded by its run."""
    settings: dict[str, Any] = dict(cell.settings)
    log = given.log if METHODS[cell.method].full_log else given.log.variants
    return release(log, cell.method, seed=cell.run, domain=ALL_FROM_LOG, allow_no_protection=True, **settings)


def utility(original: Variants, made: Variants, *, difference: bool = True) -> dict[str, Number]:
    """Return relative log similarity, sizes, the measures of other packages and, if it is wanted, the absolute log
    difference with the buffer of the published heat maps."""
    values: dict[str, Number] = {
        "similarity": relative_log_similarity(original, made).value,
        "size_ratio": made.cases / original.cases,
        "variants": len(made),
    }
    if difference:
        values["difference"] = int(absolute_log_difference(original, made, buffer="maximum").value)
    return values | _added(original, made)


def added_columns() -> dict[str, str]:
    """Return the columns of measures that other packages add, and which distribution each is of."""
    own = ((name, by) for name in MEASURES if (by := MEASURES.added_by(name)))
    return {column: by for name, by in own for column in _columns(MEASURES[name])}


def _columns(measure: Measure) -> list[str]:
    """Return a column for each number: the measure's name, and that of the number where it has several."""
    parts = [quantity.of for quantity in measure.quantities]
    return [measure.name if len(parts) == 1 else f"{measure.name}.{part}" for part in parts]


def _added(original: Variants, made: Variants) -> dict[str, Number]:
    """Return what the measures that other packages add find; None where they find nothing."""
    values: dict[str, Number] = {}
    pair = Pair(original, made)
    with pair.closing():
        for name in MEASURES:
            if by := MEASURES.added_by(name):
                found = MEASURES[name].found_by(by, pair)
                values |= zip(_columns(MEASURES[name]), MEASURES[name].numbers(found.value).values(), strict=True)
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


def models(original: Variants, made: Variants, cell: Cell, noise: float = 0.2) -> tuple[dict[str, Number], str | None]:
    """Return the quality of the model discovered from the release at this noise threshold, or why there is none.

    Where precision on all prefixes takes too long it is estimated, which the remark says.
    """
    try:
        quality = model_quality(original, made, noise=noise, seconds=cell.models, prefixes=cell.prefixes or None)
        remark = next((f"{name}: {why}" for name, why in quality.not_computed.items()), None)
        if quality.precision is None and quality.fitness is not None and not cell.prefixes:
            again = model_quality(original, made, noise=noise, seconds=cell.models, prefixes=PREFIXES)
            if again.precision is not None:
                quality = again
                remark = f"precision: estimated from {PREFIXES} prefixes; all of them took over {cell.models:g} s."
    except VeilogError as error:
        return dict.fromkeys(OF_MODELS), str(error)
    return {name: getattr(quality, name) for name in OF_MODELS}, remark
