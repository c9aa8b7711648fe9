"""Making a release in a worker: the release, its files and reports, and what its owner sees of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilog import report
from veilog.charts import comparison_svg
from veilog.errors import VeilogError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import singling_out
from veilog.measures.comparison import Comparison
from veilog.measures.disclosure import RiskResult
from veilog.plain import to_plain
from veilog.privacy.guarantee import Guarantee
from veilog.privacy.ledger import Ledger
from veilog.released import Release
from veilog.releasing import release
from veilog.report import words
from veilog.report.explorer import clean, short
from veilog.report.facts import Facts, gathered
from veilog.report.page import rendered
from veilog.report.told import told_by_release
from veilog.web.records import Settings
from veilog.web.work_reading import Progress, in_words, log_of, shown_rows
from veilog.web.work_request import Asked, asked_for

__all__ = ["release_log"]

_LOGS = ("release.xes", "release.csv", "release.parquet")
_CHARGES = 60
_LONGEST_CHART = 100_000


def release_log(
    path: Path,
    columns: Mapping[str, str],
    request: Mapping[str, Any],
    out: Path,
    settings: Settings,
    progress: Progress,
) -> dict[str, Any]:
    """Release a log as a form asks for it, enter it in the ledger, and write its files into ``out``.

    What goes wrong before anything was asked of the data raises and costs nothing. Once there is a release, what fails
    is said beside it: it is paid for and must not be lost.
    """
    asked = asked_for(request)
    name = short(str(request.get("log_name") or path.name), 120)
    log = replace(log_of(path, columns, progress), source=name)  # what its account is called
    ledger = Ledger.open(settings.ledger, create=True, waiting=progress, name=name)
    data = log if asked.whole_log else log.variants
    progress(f"releasing with {asked.method.name}", None)
    try:
        released = release(
            data, asked.method.name, **asked.arguments(), seed=settings.seed, ledger=ledger, progress=progress
        )
    except VeilogError as error:
        raise in_words(error) from error.__cause__
    missing = _written(released, out, progress)
    result = _about(released, asked)
    try:
        result |= _seen_by_owner(released, log, out, progress)
    except (VeilogError, MemoryError) as error:
        missing.append(f"The release could not be compared with the original: {_reason(error)}")
    result["missing"] = missing
    result["files"] = {file.name: file.stat().st_size for file in sorted(out.iterdir()) if file.is_file()}
    return result


def _written(released: Release, out: Path, progress: Progress) -> list[str]:
    """Write certificate, outside report and the log in three formats; returns what could not be written."""
    missing: list[str] = []
    certificate = json.dumps(released.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with files.atomic_target(out / "certificate.json") as file:
        file.write(certificate.encode("utf-8", "replace"))
    if released.variants.cases == 0:
        return missing
    for name in _LOGS:
        progress(f"writing {name}", None)
        try:
            released.save(out / name)
        except VeilogError as error:
            missing.append(f"{name} was not written: {_reason(error)}")
    progress("writing the report", None)
    try:
        report.write(released, out / "outside.html", progress=progress)
    except VeilogError as error:
        missing.append(f"outside.html was not written: {_reason(error)}")
    return missing


def _about(released: Release, asked: Asked) -> dict[str, Any]:
    """What the release says about itself: this is also what others may know."""
    told = told_by_release(released)
    g = released.guarantee
    certificate = released.to_json() | {"guarantee": _shortened(g)}
    account = None
    if released.entry is not None:
        account = released.entry.account().totals()
    return {
        "certificate": certificate,
        "more_charges": max(0, len(g.charges) - _CHARGES),
        "method": told.method,
        "budget": words.title_of_budget(g),
        "plain": words.in_plain_words(told),
        "chances": words.chances(g),
        "timed": told.timed,
        "empty": released.variants.cases == 0,
        "account": account,
        "activities": len(released.variants.labels),
        "seconds": released.owner_only.seconds,
        "asked": {"method": asked.method.name, "epsilon": asked.epsilon, "delta": asked.delta},
    }


def _shortened(guarantee: Guarantee) -> dict[str, object]:
    facts = guarantee.to_json()
    return facts | {"charges": [charge.to_json() for charge in guarantee.charges[:_CHARGES]]}


def _seen_by_owner(released: Release, log: EventLog, out: Path, progress: Progress) -> dict[str, Any]:
    """Original and release side by side. Exact numbers of the log: none of it is part of the release."""
    if released.variants.cases == 0:
        return {}
    told = told_by_release(released)
    original: EventLog | Variants = log if told.timed else log.variants
    facts = gathered(told, released, original, progress=progress)
    with files.atomic_target(out / "inside.html") as file:
        file.write(rendered(facts).encode("utf-8", "replace"))
    inside = facts.inside
    if inside is None:
        return {}
    comparison = inside.comparison
    singled = None if comparison is None else comparison.singling_out
    about_people = "" if singled is None else singling_out.in_words(singled)
    return {
        "before": {
            "cases": inside.cases,
            "variants": inside.variants,
            "events": inside.events,
            "activities": inside.activities,
        },
        "verdict": "" if comparison is None else comparison.verdict.removesuffix(about_people).strip(),
        "kept": None if comparison is None else _kept(comparison),
        "not_compared": inside.not_compared,
        "explorer": shown_rows(released.variants, log.variants),
        "map": to_plain(facts.map),
        "map_before": to_plain(inside.map),
        "durations": [list(pair) for pair in facts.durations],
        "no_durations": facts.no_durations,
        "chart": _chart(comparison),
        "risk": [[_risk(before), _risk(after)] for before, after in inside.risk],
        "singled": None if singled is None else _singled(singled),
        "singled_in_words": about_people,
        "not_to_conclude": _not_to_conclude(facts),
    }


def _chart(comparison: Comparison | None) -> str | None:
    if comparison is None or comparison.case_durations is None:
        return None
    svg = comparison_svg(comparison, styled=False)
    return svg if len(svg) <= _LONGEST_CHART else None


def _kept(c: Comparison) -> dict[str, Any]:
    return {
        "similarity": c.relative_log_similarity,
        "difference": c.absolute_log_difference,
        "moved": c.dfg_moved,
        "activities": c.coverage.activities,
        "steps": c.coverage.directly_follows,
        "size": c.size_ratio,
        "common": c.variants.common,
        "added": c.variants.added,
        "lost": c.variants.lost,
        "real": c.keep_real,
        "length_error": c.length_error,
    }


def _risk(r: RiskResult) -> dict[str, Any]:
    return {
        "background": r.background,
        "size": r.size,
        "case_disclosure": r.case_disclosure,
        "unique": r.unique,
        "cases": r.cases,
        "exact": r.exact,
    }


def _singled(found: singling_out.SinglingOut) -> list[dict[str, Any]]:
    return [
        {
            "events": k.size,
            "with_start": k.with_start,
            "people": k.people,
            "guessed": [k.guessed.original.value, k.guessed.released.value, k.guessed.baseline.value],
            "singled_out": [k.singled_out.original.value, k.singled_out.released.value],
            "more": k.more,
        }
        for k in found.results
    ]


def _not_to_conclude(facts: Facts) -> list[str]:
    return words.not_to_conclude(facts.told, facts.empty, True)


def _reason(error: VeilogError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "there was not enough memory."
    return clean(getattr(error, "problem", str(error)))
