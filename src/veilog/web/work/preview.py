"""Previews for the pages: what the form of a release would ask and cost, and what methods would keep at which budgets.

Nothing is asked of the log or paid for. The guarantee is that of a plan on synthetic patients, found in a process
beside the server: what a form asks for may be large beyond any measure, and one that takes too long, or too much
memory, is ended. What methods keep is tried in a worker, on synthetic logs whose sizes are those that somebody says,
or those of a release that is paid for, or, for the owner's eyes only, those of the log itself. A few budgets are tried;
what lies between them is read off the line from one to the next.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal

from veilog._files import atomic_target
from veilog._language import gettext, localised, percent
from veilog._plain import from_plain, to_plain
from veilog._process import Child, limit_memory
from veilog.errors import InputError, ParameterError, VeilogError
from veilog.logs import files
from veilog.logs.synthetic.twins import Sizes, twin_of
from veilog.logs.variants import Variants
from veilog.methods import method_named
from veilog.privacy.account.guarantee import Guarantee, Strength
from veilog.privacy.account.guessing import worth
from veilog.privacy.domain import FROM_LOG
from veilog.releasing.losses import losses_by_list
from veilog.releasing.preview import ENOUGH, Expected, Interval, Preview, expectation, guarantee_of
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.standing import OF_ACCOUNTS
from veilog.report.explorer import clean
from veilog.report.figures import figure
from veilog.report.flow_map import FlowSteps, arranged, drawn, steps_of
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord, ServerSettings
from veilog.web.jobs.results import PreviewCell, PreviewRow, Previews, ReleasedLog, to_text
from veilog.web.jobs.worker import RESULT, Progress, WorkerTask
from veilog.web.work.accounts import InAccount, advantage_at, foreseen
from veilog.web.work.attribute_policy import refuse_attributes
from veilog.web.work.request import FIELDS, asked_for, delta_for, undeclared

_TRIALS = ThreadPoolExecutor(2, thread_name_prefix="preview")
_PATIENCE = 5.0
"""Seconds that a page waits for a guarantee."""
_DROWNED = 0.3
"""Share of cases with a wrong value from which on an attribute is warned of."""


@dataclass(frozen=True)
class FormPreview:
    """What the form of a release would ask and cost, and what would be left."""

    plan: ReleaseRequest
    preview: Preview
    """Its guarantee is None where that took too long, and where nobody can wait for it."""
    undeclared: str | None
    """What has to be said first, in words."""
    late: bool
    """Whether the guarantee is still looked for, or was given up."""
    given_up: bool
    """Whether it took too long."""
    advantage: float | None
    """In percentage points; None where nothing would be proven."""
    strength: Strength | None
    warnings: tuple[str, ...]
    """For the owner only."""
    account: InAccount

    @property
    def blurred(self) -> tuple[tuple[str, float], ...]:
        """Attributes that the budget carries, and the share of the cases to which noise alone gives another value, for
        the owner only; where no values are listed it is not known yet."""
        return tuple((name, share) for name, share in self.preview.attribute_errors if share <= _DROWNED)


@dataclass(frozen=True)
class Refused:
    """A form that asks for nothing that could be made."""

    problem: str
    parameter: str | None = None
    """The parameter that it is about, if it is about one."""


def preview_form(log: LogRecord, form: Mapping[str, Any], settings: ServerSettings) -> FormPreview | Refused:
    """Return what this form would ask and cost, and what would be left."""
    found: Guarantee | VeilogError | None = None
    late = given_up = False
    try:
        planned = asked_for(form).seeded(settings.seed)
        refuse_attributes(planned, log)
        asked = json.dumps({"plan": planned.to_json(), "sizes": _public_sizes(log, planned)})
        found = None if _too_long(planned) else _trial(asked).result(_PATIENCE)
    except (TimeoutError, GivenUp) as error:
        late, given_up = True, isinstance(error, GivenUp)
    except VeilogError as error:
        return Refused(clean(str(error)), getattr(error, "parameter", None))
    if isinstance(found, VeilogError):
        return Refused(clean(str(found)))
    cost = (planned.epsilon, planned.delta) if planned.bounded else None
    proven = cost is not None and (late or (found is not None and found.proven))
    preview = Preview(found, attribute_errors=tuple(planned.attribute_errors(log.cases).items()))
    return FormPreview(
        plan=planned,
        preview=preview,
        undeclared=undeclared(planned),
        late=late,
        given_up=given_up,
        advantage=advantage_at(cost) if cost is not None and proven else None,
        strength=worth(cost, cases=log.cases) if proven else None,
        warnings=_warnings(log, planned, preview),
        account=foreseen(log, planned, cost, settings),
    )


def _public_sizes(log: LogRecord, planned: ReleaseRequest) -> dict[str, int]:
    """The sizes of the log that its owner says are public: what is asked goes by them."""
    measured, sizes = log.measured, dict[str, int]()
    if measured is not None and planned.declared.activities == FROM_LOG:
        sizes["activities"] = measured.statistics.activities
    if measured is not None and planned.declared.max_length == FROM_LOG:
        sizes["longest"] = measured.statistics.length_max
    return sizes


def _too_long(planned: ReleaseRequest) -> bool:
    """A published training has its own number of steps, and takes minutes."""
    return planned.method.name == "travag" and planned.as_published


@lru_cache(maxsize=128)
def _trial(asked: str) -> Future[Guarantee | VeilogError]:
    """The trial of a plan, begun when it is first asked for; who does not wait for it can come again."""
    return _TRIALS.submit(guarantee_beside, asked, _given_up[0])


def give_up() -> None:
    """Give up all dry runs, those that are under way and those that wait: the server stops."""
    _trial.cache_clear()
    _given_up[0].set()
    _given_up[0] = Event()


def _warnings(log: LogRecord, planned: ReleaseRequest, preview: Preview) -> tuple[str, ...]:
    """Whether delta is small enough for this many cases, which attributes the budget cannot carry, and which listed
    activities the log does not have."""
    cases = log.cases
    found = [
        gettext(
            "{name}: noise alone will give up to about {share} of the cases another value. Give attributes a larger "
            "share, or declare fewer values.",
            name=name,
            share=percent(f"{100 * share:.0f}"),
        )
        for name, share in preview.attribute_errors
        if share > _DROWNED
    ]
    found += _misnamed(log, planned) + _misdated(log, planned)
    if planned.delta * cases > Fraction(1, 10):
        found.append(
            gettext(
                "δ = {delta} is not well below one over the {cases} cases of the log. It allows a person's trace to "
                "be published unchanged. Choose a smaller δ.",
                delta=figure(planned.delta),
                cases=cases,
            )
        )
    return tuple(found)


def _misnamed(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """What a list of activities leaves out, where all of the log's own are known; for the owner."""
    measured = log.measured
    if measured is None or measured.more_labels:
        return []
    found = losses_by_list(dict(zip(measured.labels, measured.label_events, strict=True)), planned.declared)
    return [clean(str(loss.message)) for loss in found]


def _misdated(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """Whether all of the log lies outside the time in which cases were said to start; for the owner."""
    window, measured = planned.declared.window, log.measured
    if window is None or measured is None or not (measured.statistics.start and measured.statistics.end):
        return []
    first, last = (moment[:10] for moment in (measured.statistics.start, measured.statistics.end))
    if first < window[1].date().isoformat() and window[0].date().isoformat() <= last:
        return []
    return [gettext("The log has no event in the declared window of starts.")]


_LONGEST = 20.0
"""Seconds of processor time; on an idle machine all but those with gradients take less than two."""
_LONGEST_WAIT = 120.0
"""Seconds in all, also where the system does not tell those of a process."""
_MEMORY = 2 << 30
_LOOK = 0.05
_idle: list[Child] = []
_changing = Lock()
_given_up: list[Event] = [Event()]
"""Set when the server stops, for all that are under way or wait by then."""


class GivenUp(Exception):
    """A dry run that took too long, or too much memory."""


def guarantee_beside(asked: str, given_up: Event) -> Guarantee | VeilogError:
    """Return what a plan, as JSON with the public sizes of its log, would guarantee, or why it is refused;
    :class:`GivenUp` where that is too much."""
    if given_up.is_set():
        raise GivenUp
    with _changing:
        child = _idle.pop() if _idle else None
    child = child if child is not None and child.alive else Child(_answering)
    try:
        child.pipe.send_bytes(asked.encode())
        found = _awaited(child, given_up)
    except (EOFError, OSError) as error:
        if child.end() == 1:  # of an error that nobody foresaw, which it told the terminal
            raise
        raise GivenUp from error
    with _changing:
        _idle.append(child)
    return found


def _awaited(child: Child, given_up: Event) -> Guarantee | VeilogError:
    since, before = time.monotonic(), child.seconds()
    while not child.pipe.poll(_LOOK):
        late = child.seconds() - before > _LONGEST or time.monotonic() - since > _LONGEST_WAIT
        if late or given_up.is_set() or child.memory() > _MEMORY:
            child.end(0)
            raise GivenUp
    found = child.pipe.recv()  # of this program's own making: it read nothing that anybody brought
    assert isinstance(found, Guarantee | VeilogError)
    return found


def _answering(pipe: Connection) -> None:
    """What the process does, until nobody asks any more."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpgid(0, 0)  # it is weighed, and ended, by its group
    limit_memory(_MEMORY, reserved=False)
    with contextlib.suppress(EOFError, OSError, MemoryError):
        while True:
            asked = json.loads(pipe.recv_bytes())
            plan = ReleaseRequest.from_json(asked["plan"])
            try:
                pipe.send(guarantee_of(plan, **asked["sizes"]))
            except VeilogError as error:
                pipe.send(error)


@atexit.register
def _end() -> None:
    """Before multiprocessing waits for them."""
    with _changing:
        while _idle:
            _idle.pop().end(0)


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
_USE_CASES = ("prediction", "discovery")
"""What it would be good for, the quicker one first; each is tried only where half of the time is left."""
_QUICK = ("travas", "laplace")
"""What takes a moment is tried first."""
_OF_NO_MATTER = ("epsilon", "allow_no_protection", "subset")
_REMARKS = 3


def sized_release(jobs: Iterable[JobRecord]) -> JobRecord | None:
    """Return the newest release of all cases whose sizes may be used: its guarantee is proven, and it has cases."""
    for job in jobs:
        made = job.result
        usable = isinstance(made, ReleasedLog) and not made.empty and KEPT_LOG in made.files
        if usable and not job.request.form.get("subset") and made.guarantee.proven:  # type: ignore[union-attr]
            return job
    return None


def preview_request(form: Mapping[str, str], log: LogRecord, paid: JobRecord | None) -> JobRequest:
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
        raise ParameterError("form-size-choice-unknown", parameter="s_from")
    return JobRequest(form={**kept, "s_from": source, "s_sizes": json.dumps(to_plain(sizes))})


def _declared(form: Mapping[str, str]) -> Sizes:
    """The sizes that somebody says."""
    given = {name: form.get(f"s_{name}", "").strip().replace(",", ".") for name in ("cases", "length", "activities")}
    if not (given["cases"] and given["length"]):
        raise ParameterError("form-size-missing", parameter="s_cases")
    try:
        activities = int(given["activities"]) if given["activities"] else None
        return Sizes(cases=int(given["cases"]), length=float(given["length"]), activities=activities)
    except (ValueError, OverflowError):
        raise ParameterError("form-size-not-numbers", parameter="s_cases") from None


def preview_all(task: WorkerTask, progress: Progress) -> Previews:
    """Preview what the request says, in a worker. What there is so far is written down, for whoever waits."""
    out, form = Path(task.out), task.request.form
    source: Literal["release", "log", "declared"] = "declared"
    if form["s_from"] == "release":
        source, sizes = "release", _sizes_of(out.parent / form["s_release"] / KEPT_LOG)
    else:
        source = "log" if form["s_from"] == "log" else "declared"
        sizes = from_plain(Sizes, json.loads(form["s_sizes"]))
    return _PreviewRun(form, sizes, source, out / RESULT, progress).all()


def _sizes_of(kept: Path) -> Sizes:
    """The sizes of a release, which may have been deleted since it was asked for."""
    try:
        return Sizes.of(files.read(kept).variants)
    except VeilogError as error:
        raise InputError("release-no-longer-kept") from error


class _PreviewRun:
    """Previews of a few methods at a few budgets, the quick ones first."""

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
        self._rows: dict[str, PreviewRow] = {}
        self._twin: Variants | None = None

    def all(self) -> Previews:
        chosen = self._form["method"]
        names = list(dict.fromkeys([chosen, *_OTHERS]))[:_METHODS]
        plans = {name: self._plans_of(name, name == chosen) for name in names}
        self._rows = {name: _row(name, *found) for name, found in plans.items()}
        cells = [
            (name, epsilon, plan)
            for name in sorted(plans, key=lambda name: name not in _QUICK)
            for epsilon, plan in plans[name][0].items()
        ]
        for done, (name, epsilon, plan) in enumerate(cells):
            row = self._rows[name]
            if time.monotonic() > self._until:
                return self._found(late=True)
            if row.problem:
                continue
            self._progress(
                gettext("Trying {method} at ε = {epsilon}", method=name, epsilon=localised(epsilon)),
                done / (len(cells) + 1),
            )
            try:
                self._rows[name] = replace(row, cells=(*row.cells, self._cell(name, epsilon, plan)))
            except VeilogError as error:
                self._rows[name] = replace(row, problem=clean(str(error)))
            self._keep(self._found(late=done < len(cells) - 1))
        best = recommended(list(self._rows.values()))
        for use_case in _USE_CASES:
            if best is not None and time.monotonic() < self._until - _SECONDS / 2:
                self._progress(gettext("Trying what it would be good for"), len(cells) / (len(cells) + 1))
                self._judged(best[0], best[1].epsilon, plans[best[0]][0], use_case)
                self._keep(self._found(late=False))
        return self._found(late=False)

    def _plans_of(self, name: str, own: bool) -> tuple[dict[str, ReleaseRequest], str]:
        """The plans of a method by their budgets, and why there are none."""
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
                problem = problem or clean(str(error))
        return {}, problem

    def _cell(self, name: str, epsilon: str, plan: ReleaseRequest) -> PreviewCell:
        said: list[str] = []

        def seen(made: Variants, released: Release) -> None:
            if (name, epsilon) in self._steps:
                return
            self._twin = self._twin or made
            self._steps[name, epsilon] = steps_of(released.variants)
            said.extend(map(str, released.remarks))
            # A trial has a seed, and is in no account; a release is in one.
            said.extend(str(note) for note in released.owner_only.notes if note.code not in OF_ACCOUNTS)

        found = expectation(plan, self._sizes, seen=seen)
        drawn_at = self._steps[name, epsilon]
        return PreviewCell(epsilon, found, drawn(drawn_at, arranged([drawn_at])), _remarks(found, said))

    def _judged(self, method: str, epsilon: str, plans: Mapping[str, ReleaseRequest], use_case: str) -> None:
        found = expectation(plans[epsilon], self._sizes, use_cases=(use_case,)).use_cases
        row = self._rows[method]
        cells = (
            replace(c, expected=replace(c.expected, use_cases=(*c.expected.use_cases, *found)))
            if c.epsilon == epsilon
            else c
            for c in row.cells
        )
        self._rows[method] = replace(row, cells=tuple(cells))

    def _found(self, *, late: bool) -> Previews:
        """What there is so far, with all maps in the same places."""
        own = steps_of(self._twin if self._twin is not None else twin_of(self._sizes, 0))
        places = arranged([own, *self._steps.values()])
        rows = tuple(
            replace(
                row,
                cells=tuple(replace(c, map=drawn(self._steps[row.method, c.epsilon], places)) for c in row.cells),
            )
            for row in self._rows.values()
        )
        return Previews(self._sizes, self._source, drawn(own, places), rows, late)

    def _keep(self, found: Previews) -> None:
        with contextlib.suppress(VeilogError), atomic_target(self._target) as file:
            file.write(to_text(found).encode())


def _row(name: str, plans: Mapping[str, ReleaseRequest], problem: str) -> PreviewRow:
    delta = next((plan.delta for plan in plans.values()), Fraction(0))
    return PreviewRow(name, clean(method_named(name).title), f"{float(delta):g}", problem=problem)


def _remarks(found: Expected, said: Iterable[str]) -> tuple[str, ...]:
    """What can be known beforehand, without what is about options of the command."""
    first = "" if found.promising else str(found.doubt)
    if not found.similarity.mean:
        first = gettext("Nothing, or next to nothing, would come through: no case survives the noise.")
    survive = "" if found.survivors is None else str(found.survivors.message)
    texts = (clean(text) for text in (survive, first, *said))
    return tuple(dict.fromkeys(text for text in texts if text))[:_REMARKS]


def recommended(rows: Sequence[PreviewRow], left: float | None = None) -> tuple[str, PreviewCell] | None:
    """Return the method and budget that are worth it: the smallest budget at which a release keeps nearly as much
    as the best of those that are usual and that the account allows, by what is ``left`` of it; None where none keeps
    enough."""
    most = min(_USUAL, math.inf if left is None else left)
    cells = [(row.method, cell) for row in rows for cell in row.cells if float(cell.epsilon) <= most]
    best = max((cell.expected.similarity.mean for _, cell in cells), default=0.0)
    enough = [found for found in cells if found[1].expected.similarity.mean >= max(ENOUGH, best - _NEAR)]
    return min(enough, key=lambda found: (float(found[1].epsilon), -found[1].expected.similarity.mean), default=None)


def keeps(row: PreviewRow, epsilon: str) -> Interval | None:
    """Return what a method keeps at a budget, on the line between those that were tried; None beyond them."""
    try:
        at = math.log(float(epsilon.replace(",", ".")))
    except (ValueError, OverflowError):
        return None
    places = [(math.log(float(cell.epsilon)), cell.expected.similarity) for cell in row.cells]
    for (low, first), (high, second) in itertools.pairwise(places):
        if low - 1e-9 <= at <= high + 1e-9:
            t = (at - low) / (high - low)
            ends = zip((first.mean, first.low, first.high), (second.mean, second.low, second.high), strict=True)
            return Interval(*((1 - t) * a + t * b for a, b in ends))
    return None
