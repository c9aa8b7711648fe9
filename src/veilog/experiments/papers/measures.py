"""Measures of the papers' tables and figures, by their names in the manifest."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from veilog.errors import ParameterError, VeilogError
from veilog.experiments.experiment import EMPTY, MOST_RUNS, Cell, Given, Measured, Number, make_release, models, utility
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.anomalies import normal_share
from veilog.measures.complexity import complexity
from veilog.measures.directly_follows import edge_frequencies, frequency_emd, time_emd
from veilog.measures.disclosure import risk
from veilog.measures.durations import active_cases, case_durations, spans
from veilog.measures.overlap import overlap
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.method import Request
from veilog.methods.travag import PROGRAM, Trained, draws, train
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

OVER = 100
"""Factor of the draws from TraVaG, by which the counts are divided again."""
_WORK = 4e9
_DRAWS = 100
"""Number of releases to try for a number of variants in the paper's range."""
_DAY_HOURS = 24


def statistics(given: Given, cell: Cell) -> Measured:
    """Return the sizes of a log, its directly-follows pairs, and its cases' days."""
    told = given.log.statistics
    values: dict[str, Number] = {name: getattr(told, name) for name in ("cases", "events", "activities", "variants")}
    values |= {"uniqueness": told.uniqueness, "edges": len(edge_frequencies(given.log))}
    values |= {"shortest": told.length_min, "longest": told.length_max}
    try:
        both = spans(given.log)
        days = case_durations(both, both).original
    except ParameterError as error:
        return Measured(values, str(error))
    lasting = zip(("least_days", "most_days", "mean_days"), (days.minimum, days.maximum, days.mean), strict=True)
    return Measured(values | {name: hours / _DAY_HOURS for name, hours in lasting})


def utilities(given: Given, cell: Cell) -> Measured:
    """Return similarity and difference; with models, how each replays the other side."""
    original = given.log.variants
    known: dict[str, Any] = {}
    if cell.get("settings") == "program":
        made, known = _generate_as_published(given, cell)
    elif cell.get("variants"):
        made, known = _redraw_release(given, cell)
    else:
        made = make_release(given, cell).variants
    if made.events == 0:
        return Measured({}, str(known.get("problem", EMPTY)))
    values, problem = utility(original, made) | known, None
    if cell.models:
        more, problem = models(original, made, cell)
        other, why = models(made, original, cell)
        values |= more | {f"{name}_of_release": other[name] for name in ("fitness", "precision")}
        problem = problem or why
    return Measured(values, problem)


def _redraw_release(given: Given, cell: Cell) -> tuple[Variants, dict[str, Any]]:
    """Return the first release with a number of variants in the cell's range.

    TraVaS's authors draw theirs so. It comes with its similarity as their program computes it. Traces of one activity
    do not count.
    """
    settings = tuple((name, value) for name, value in cell.settings if name != "variants")
    least, most = map(int, str(cell.get("variants")).split("-"))
    for attempt in range(_DRAWS):
        seeded = replace(cell, settings=settings, run=cell.run + attempt * MOST_RUNS)
        found = sorted(make_release(given, seeded).variants.to_dict().items(), key=_length)
        listed = {sequence: cases for sequence, cases in found if len(sequence) > 1}
        if least <= len(listed) <= most:
            made = Variants.from_sequences(listed.keys(), listed.values())
            return made, {"similarity_by_place": similarity_by_place(variants_in_file(given.log), listed)}
    return Variants.from_dict({}), {"problem": f"none of {_DRAWS} draws had {least} to {most} variants"}


def _length(variant: tuple[Sequence[str], int]) -> int:
    return len(variant[0])


def _generate_as_published(given: Given, cell: Cell) -> tuple[Variants, dict[str, Number]]:
    """Train TraVaG as its authors' program does; return the draws and similarities."""
    log, configuration = given.log, PROGRAM[str(cell.get("configuration"))]
    epsilon, delta = configuration.nominal
    request = Request(Fraction(epsilon), Fraction(delta), True, lambda text, share: None, lambda a, b: 0.0)
    trained = train(Curator(log.variants, randomness=noise.seeded(cell.run)), request, configuration)
    counts, all_of_them, listed = drawn(trained, log.variants.cases, cell.run)
    columns = trained.columns
    made = Variants.from_arrays(columns.labels, columns.codes, columns.offsets, np.rint(counts / OVER).astype(np.int64))
    return made, {
        "similarity": relative_log_similarity(log.variants, all_of_them).value,
        "similarity_by_place": similarity_by_place(variants_in_file(log), listed),
    }


def drawn(trained: Trained, cases: int, seed: int) -> tuple[np.ndarray, Variants, dict[tuple[str, ...], int]]:
    """Return ``OVER`` times the cases as counts and variants, and divided, as drawn."""
    chosen = np.concatenate(list(draws(trained, OVER * cases, np.random.default_rng(seed))))
    columns = trained.columns
    counts = np.bincount(chosen, minlength=len(columns))
    values, first = np.unique(chosen, return_index=True)
    listed = {columns[int(place)]: int(counts[place]) // OVER for place in values[np.argsort(first)]}
    return counts, Variants.from_arrays(columns.labels, columns.codes, columns.offsets, counts), listed


def variants_in_file(log: EventLog) -> dict[tuple[str, ...], int]:
    """Return the cases of each variant, in the order of their first place in the file."""
    labels, codes = log.activity_codes
    names = np.array(labels, dtype=object)[codes]
    return dict(Counter(tuple(names[a:b]) for a, b in itertools.pairwise(log.offsets.tolist())))


def similarity_by_place(original: Mapping[tuple[str, ...], int], made: Mapping[tuple[str, ...], int]) -> float:
    """Return relative log similarity as TraVaG's program computes it.

    Its library takes the variants at the same place of both lists for equal, and moves only the rest of their shares.
    """
    ours, theirs = sum(original.values()), sum(made.values())
    rest: dict[Sequence[str], int] = {s: n * theirs for s, n in original.items()}
    other: dict[Sequence[str], int] = {s: n * ours for s, n in made.items()}
    for (one, n), (two, m) in zip(list(rest.items()), list(other.items()), strict=False):
        rest[one], other[two] = n - min(n, m), m - min(n, m)
    left = sum(rest.values())
    if not left:
        return 1.0
    moved = relative_log_similarity(Variants.from_dict(rest), Variants.from_dict(other)).loss
    return 1 - moved * left / (ours * theirs)


def directly_follows(given: Given, cell: Cell) -> Measured:
    """Return the errors of directly-follows frequencies and times, and active cases.

    It also has the lost variants. A release with epsilons has their mean, least and largest.
    """
    release = make_release(given, cell)
    if release.variants.events == 0:
        return Measured({}, EMPTY)
    values: dict[str, Number] = {"frequency": frequency_emd(given.log, release.variants)}
    values["lost"] = overlap(given.log.variants, release.variants).lost
    if cell.get("epsilons"):
        own = release.log.events.column("epsilon_per_event").to_numpy()
        values |= {"mean_epsilon": own.mean(), "least_epsilon": own.min(), "largest_epsilon": own.max()}
    if cell.method != "sacofa":  # its releases have no times
        try:
            values["time"] = time_emd(given.log, release.log)
            values["active_cases"] = active_cases(spans(given.log), spans(release.log, "released")).difference
        except ParameterError as error:
            return Measured(values, str(error))
    return Measured(values)


def file_to_file(given: Given, cell: Cell) -> Measured:
    """Return the minutes from reading a file to writing one, all of it, each time."""
    wall, used = time.perf_counter(), time.process_time()
    release = make_release(Given(given.path, name=given.name), cell)
    with tempfile.TemporaryDirectory() as folder:
        release.save(Path(folder) / "released.xes")
    return Measured({"minutes": (time.perf_counter() - wall) / 60, "cpu_minutes": (time.process_time() - used) / 60})


def disclosure(given: Given, cell: Cell) -> Measured:
    """Return disclosure, exact within the limit of work, else estimated."""
    (found,) = risk(
        given.log,
        str(cell.get("background")),
        int(cell.get("size")),
        arrangements=bool(cell.get("arrangements", False)),
        work_limit=_WORK,
    )
    values = {
        "case_disclosure": found.case_disclosure,
        "trace_disclosure": found.trace_disclosure,
        "candidates": found.candidates,
        "unique": found.unique,
        "exact": int(found.exact),
    }
    return Measured(values, None if found.reason is None else str(found.reason))


def suppression(given: Given, cell: Cell) -> Measured:
    """Return sizes, similarity and the paper's disclosure of TLKC's release or log."""
    original = given.log.variants
    left = make_release(given, cell).variants if cell.method else original
    if left.events == 0:
        return Measured({}, EMPTY)
    size = int(cell.get("l") or cell.get("size"))
    (found,) = risk(left, str(cell.get("background")), size, work_limit=_WORK / 10)
    values: dict[str, Number] = {
        "cases": left.cases,
        "variants": len(left),
        "events": left.events,
        "activities": len(left.labels),
        "similarity": relative_log_similarity(original, left).value,
        "case_disclosure": found.case_disclosure,
        "trace_disclosure": found.trace_disclosure,
    }
    return Measured(values, None if found.reason is None else str(found.reason))


def models_and_sizes(given: Given, cell: Cell) -> Measured:
    """Return size, entropy, share of normal cases and models of a release, or the log.

    The models are discovered with the noise threshold of the paper and without one, as its authors' program does.
    """
    original = given.log.variants
    made = make_release(given, cell).variants if cell.method else original
    if made.events == 0:
        return Measured({"size_ratio": made.cases / original.cases}, EMPTY)
    values: dict[str, Number] = {
        "size_ratio": made.cases / original.cases,
        "variants": len(made),
        "entropy": complexity(made).normalized_sequence_entropy,
    }
    problems = []
    try:
        values["normal_share"] = normal_share(original, made).released
    except VeilogError as error:
        problems.append(str(error))
    for ending, threshold in (("", 0.2), ("_no_threshold", 0.0)):
        more, problem = models(original, made, cell, threshold)
        values |= {f"{name}{ending}": value for name, value in more.items()}
        problems += [problem] if problem else []
    return Measured(values, "; ".join(dict.fromkeys(problems)) or None)
