"""Trying methods and budgets on made-up logs, before anything is asked or paid for.

The sizes of these logs are what somebody says, or those of a release that is paid for, or, for the owner's eyes only,
those of the log itself. A few budgets are tried; what lies between them is read off the line from one to the next.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from veilog._files import atomic_target
from veilog._language import gettext, localised
from veilog._plain import from_plain, to_plain
from veilog.errors import InputError, ParameterError, VeilogError
from veilog.logs import files
from veilog.logs.made_up.twins import Sizes, twin_of
from veilog.logs.variants import Variants
from veilog.methods import method_named
from veilog.releasing.owner.notes import is_of_account
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.trying.expected import ENOUGH, Expected, Interval, expectation
from veilog.report.explorer import clean
from veilog.report.flow_map import FlowSteps, arranged, drawn, steps_of
from veilog.web.jobs.outlook import Outlook, Tried, TriedMethod
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord
from veilog.web.jobs.released_log import ReleasedLog
from veilog.web.jobs.results import to_text
from veilog.web.jobs.worker import RESULT, Progress, WorkerTask
from veilog.web.work.request import FIELDS, asked_for, delta_for, plain_advice

__all__ = ["BUDGETS", "KEPT_LOG", "asked_to_try", "keeps", "paid_for", "recommended", "try_out"]

BUDGETS = ("0.1", "0.3", "1", "3")
"""From well protected to weakly."""
KEPT_LOG = "release.parquet"
_USUAL = 1.0
"""The largest budget that is recommended."""
_NEAR = 0.05
"""By how much less similar a release may be that is recommended for its smaller budget."""
_OTHERS = ("evolve", "travas", "laplace")
_METHODS = 3
_SECONDS = 90.0
"""So long, after which nothing further is begun."""
_PURPOSES = ("prediction", "discovery")
"""What it would be good for, the quicker one first; each is tried only where half of the time is left."""
_QUICK = ("travas", "laplace")
"""What takes a moment is tried first."""
_OF_NO_MATTER = ("epsilon", "allow_no_protection", "part")
_REMARKS = 3


def paid_for(jobs: Iterable[JobRecord]) -> JobRecord | None:
    """Return the newest release of all cases whose sizes may be used: its guarantee is proven, and it has cases."""
    for job in jobs:
        made = job.result
        usable = isinstance(made, ReleasedLog) and not made.empty and KEPT_LOG in made.files
        if usable and not job.request.form.get("part") and made.certificate.guarantee.proven:  # type: ignore[union-attr]
            return job
    return None


def asked_to_try(form: Mapping[str, str], log: LogRecord, paid: JobRecord | None) -> JobRequest:
    """Return what a form asks to be tried, without what makes no difference: the same is not tried twice. What cannot
    be meant raises."""
    kept = {name: value.strip() for name, value in form.items() if name in FIELDS or name.startswith(("p_", "d_"))}
    kept = {name: value for name, value in sorted(kept.items()) if value and name not in _OF_NO_MATTER}
    asked_for({**kept, "epsilon": BUDGETS[0]})
    source = form.get("s_from", "declared")
    if source == "release" and paid is not None:
        return JobRequest(form={**kept, "s_from": source, "s_release": paid.id})
    measured = log.measured
    if source == "log" and measured is not None:
        found, own = measured.statistics, {"activities": measured.statistics.activities}
        plain = {"cases": found.cases, "length": found.events / max(1, found.cases), "variants": found.variants, **own}
        sizes = measured.sizes or Sizes(**plain)  # type: ignore[arg-type]
    elif source == "declared":
        sizes = _declared(form)
    else:
        raise ParameterError(gettext("There is no such choice about the size of the log."), parameter="s_from")
    return JobRequest(form={**kept, "s_from": source, "s_sizes": json.dumps(to_plain(sizes))})


def _declared(form: Mapping[str, str]) -> Sizes:
    """The sizes that somebody says."""
    given = {name: form.get(f"s_{name}", "").strip().replace(",", ".") for name in ("cases", "length", "activities")}
    if not (given["cases"] and given["length"]):
        raise ParameterError(
            gettext("To try it, about how many cases there are and how many events one has must be known."),
            parameter="s_cases",
            advice=gettext("Write down both, in round numbers."),
        )
    try:
        activities = int(given["activities"]) if given["activities"] else None
        return Sizes(cases=int(given["cases"]), length=float(given["length"]), activities=activities)
    except (ValueError, OverflowError):
        raise ParameterError(
            gettext("The size of a log is told by numbers: cases, events of a case, activities."),
            parameter="s_cases",
        ) from None


def try_out(task: WorkerTask, progress: Progress) -> Outlook:
    """Try what the request says, in a worker. What there is so far is written down, for whoever waits."""
    out, form = Path(task.out), task.request.form
    source: Literal["release", "log", "declared"] = "declared"
    if form["s_from"] == "release":
        source, sizes = "release", _sizes_of(out.parent / form["s_release"] / KEPT_LOG)
    else:
        source = "log" if form["s_from"] == "log" else "declared"
        sizes = from_plain(Sizes, json.loads(form["s_sizes"]))
    return _Trials(form, sizes, source, out / RESULT, progress).all()


def _sizes_of(kept: Path) -> Sizes:
    """The sizes of a release, which may have been deleted since it was asked for."""
    try:
        return Sizes.of(files.read(kept).variants)
    except VeilogError as error:
        raise InputError(gettext("What was kept of this release is not there any more.")) from error


class _Trials:
    """One round of trials."""

    def __init__(
        self,
        form: Mapping[str, str],
        sizes: Sizes,
        source: Literal["declared", "release", "log"],
        target: Path,
        progress: Progress,
    ) -> None:
        self._form, self._sizes, self._source, self._target = form, sizes, source, target
        self._progress = progress
        self._until = time.monotonic() + _SECONDS
        self._steps: dict[tuple[str, str], FlowSteps] = {}
        self._rows: dict[str, TriedMethod] = {}
        self._twin: Variants | None = None

    def all(self) -> Outlook:
        plans = self._plans()
        self._rows = {name: _row(name, *found) for name, found in plans.items()}
        cells = [
            (name, epsilon, plan)
            for name in sorted(plans, key=lambda name: name not in _QUICK)
            for epsilon, plan in plans[name][0].items()
        ]
        for done, (name, epsilon, plan) in enumerate(cells):
            row = self._rows[name]
            if time.monotonic() > self._until:
                return self._outlook(late=True)
            if row.problem:
                continue
            self._progress(
                gettext("Trying {method} at ε = {epsilon}", method=name, epsilon=localised(epsilon)),
                done / (len(cells) + 1),
            )
            try:
                self._rows[name] = replace(row, cells=(*row.cells, self._tried(name, epsilon, plan)))
            except VeilogError as error:
                self._rows[name] = replace(row, problem=clean(error.in_command()))
            self._keep(self._outlook(late=done < len(cells) - 1))
        best = recommended(list(self._rows.values()))
        for purpose in _PURPOSES:
            if best is not None and time.monotonic() < self._until - _SECONDS / 2:
                self._progress(gettext("Trying what it would be good for"), len(cells) / (len(cells) + 1))
                self._judged(best[0], best[1].epsilon, plans[best[0]][0], purpose)
                self._keep(self._outlook(late=False))
        return self._outlook(late=False)

    def _plans(self) -> dict[str, tuple[dict[str, ReleaseRequest], str]]:
        """The plans of each method by their budgets, and why there are none."""
        chosen = self._form["method"]
        names = list(dict.fromkeys([chosen, *_OTHERS]))[:_METHODS]
        return {name: self._plans_of(name, name == chosen) for name in names}

    def _plans_of(self, name: str, own: bool) -> tuple[dict[str, ReleaseRequest], str]:
        form = {key: value for key, value in self._form.items() if not key.startswith("s_")}
        if not own:  # its own parameters are as usual
            form = {key: value for key, value in form.items() if not key.startswith("p_") and key != "as_published"}
        delta = form.get("delta") or (delta_for(self._sizes.cases) if method_named(name).needs_delta else "")
        problem = ""
        for tried in dict.fromkeys((delta, "")):  # a method that has no use for a delta refuses one
            try:
                asked = {**form, "method": name, "delta": tried}
                return {epsilon: asked_for({**asked, "epsilon": epsilon}) for epsilon in BUDGETS}, ""
            except VeilogError as error:
                problem = problem or clean(error.in_command())
        return {}, problem

    def _tried(self, name: str, epsilon: str, plan: ReleaseRequest) -> Tried:
        said: list[str] = []

        def seen(made: Variants, released: Release) -> None:
            if (name, epsilon) in self._steps:
                return
            self._twin = self._twin or made
            self._steps[name, epsilon] = steps_of(released.variants)
            said.extend(released.remarks)
            # A trial has a seed, and is in no account; a release is in one.
            said.extend(note for note in released.owner_only.notes if not is_of_account(note))

        found = expectation(plan, self._sizes, seen=seen)
        drawn_at = self._steps[name, epsilon]
        return Tried(epsilon, found.similarity, drawn(drawn_at, arranged([drawn_at])), _remarks(found, said))

    def _judged(self, method: str, epsilon: str, plans: Mapping[str, ReleaseRequest], purpose: str) -> None:
        found = expectation(plans[epsilon], self._sizes, purposes=(purpose,)).purposes
        row = self._rows[method]
        cells = (replace(c, purposes=(*c.purposes, *found)) if c.epsilon == epsilon else c for c in row.cells)
        self._rows[method] = replace(row, cells=tuple(cells))

    def _outlook(self, *, late: bool) -> Outlook:
        """What there is so far, with all maps in the same places."""
        twin = self._twin if self._twin is not None else twin_of(self._sizes, 0)
        own = steps_of(twin)
        places = arranged([own, *self._steps.values()])
        rows = tuple(
            replace(
                row,
                cells=tuple(replace(c, map=drawn(self._steps[row.method, c.epsilon], places)) for c in row.cells),
            )
            for row in self._rows.values()
        )
        return Outlook(self._sizes, self._source, drawn(own, places), rows, late)

    def _keep(self, outlook: Outlook) -> None:
        with contextlib.suppress(VeilogError), atomic_target(self._target) as file:
            file.write(to_text(outlook).encode())


def _row(name: str, plans: Mapping[str, ReleaseRequest], problem: str) -> TriedMethod:
    delta = next((plan.delta for plan in plans.values()), Fraction(0))
    return TriedMethod(name, clean(method_named(name).title), f"{float(delta):g}", problem=problem)


def _remarks(found: Expected, said: Iterable[str]) -> tuple[str, ...]:
    """What can be known beforehand, without what is about options of the command."""
    first = "" if found.promising else found.doubt
    if not found.similarity.mean:
        first = gettext("Nothing, or next to nothing, would come through: no case survives the noise.")
    survive = "" if found.survivors is None else found.survivors.in_words()
    texts = (plain_advice(text) for text in (survive, first, *said))
    return tuple(dict.fromkeys(text for text in texts if text))[:_REMARKS]


def recommended(rows: Sequence[TriedMethod], left: float | None = None) -> tuple[str, Tried] | None:
    """Return the method and budget that are worth it: the smallest budget at which a release keeps nearly as much
    as the best of those that are usual and that the account allows, by what is ``left`` of it; None where none keeps
    enough."""
    most = min(_USUAL, math.inf if left is None else left)
    cells = [(row.method, cell) for row in rows for cell in row.cells if float(cell.epsilon) <= most]
    best = max((cell.similarity.mean for _, cell in cells), default=0.0)
    enough = [found for found in cells if found[1].similarity.mean >= max(ENOUGH, best - _NEAR)]
    return min(enough, key=lambda found: (float(found[1].epsilon), -found[1].similarity.mean), default=None)


def keeps(row: TriedMethod, epsilon: str) -> Interval | None:
    """Return what a method keeps at a budget, on the line between those that were tried; None beyond them."""
    try:
        at = math.log(float(epsilon.replace(",", ".")))
    except (ValueError, OverflowError):
        return None
    places = [(math.log(float(cell.epsilon)), cell.similarity) for cell in row.cells]
    for (low, first), (high, second) in itertools.pairwise(places):
        if low - 1e-9 <= at <= high + 1e-9:
            t = (at - low) / (high - low)
            ends = zip((first.mean, first.low, first.high), (second.mean, second.low, second.high), strict=True)
            return Interval(*((1 - t) * a + t * b for a, b in ends))
    return None
