"""The forecast: what releases at a few budgets are expected to be worth, by the settings of a form.

It is tried in a worker, on synthetic logs that have the exact sizes of the log. Only the data owner sees it. Nothing is
asked of the log but its sizes, and nothing is spent.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from veilog._files import atomic_target
from veilog._language import gettext, localised
from veilog._plain import from_plain, to_plain
from veilog.errors import VeilogError
from veilog.logs.synthetic.twins import Sizes
from veilog.privacy.domain import FROM_LOG
from veilog.releasing.preview import TWINS, expectation
from veilog.report.explorer import clean
from veilog.web.jobs.records import JobRequest, LogRecord
from veilog.web.jobs.results import Forecast, to_text
from veilog.web.jobs.worker import RESULT, Progress, WorkerTask
from veilog.web.work.prior import FIELD
from veilog.web.work.request import asked_for, completed

BUDGETS = ("0.1", "0.3", "1", "3")
"""From well protected to weakly."""
_IN_TURN = ("1", "0.3", "0.1", "3")
"""The usual budget first: whoever waits looks at it."""
_SECONDS = 60.0
"""So long, after which nothing further is begun."""
_LARGE = 50_000
"""Events of a log from which on two synthetic logs have to do, since each takes long."""
_OF_NO_MATTER = ("epsilon", "allow_no_protection", "subset", "unit", "without_person", FIELD)
"""Fields that change nothing of what is tried: the unit does so by the number of its cases."""
_USUAL = (("labels", FROM_LOG), ("longest", FROM_LOG))
"""Answers that are taken where none is given yet."""


def forecast_request(form: Mapping[str, str], log: LogRecord) -> JobRequest | None:
    """Return the forecast that a form asks for, without what makes no difference, so that the same is not tried twice;
    None where there can be none. What cannot be meant raises."""
    measured = log.measured
    if measured is None or measured.sizes is None:
        return None
    given = {name: value.strip() for name, value in completed(form, log.cases).items()}
    matters = {name: value for name, value in sorted(given.items()) if value and name not in _OF_NO_MATTER}
    kept = {name: value for name, value in matters.items() if (name, value) not in _USUAL}
    if given.get("unit", "case") == "case":
        kept.pop("max_cases", None)
    else:
        kept["unit"] = "person"
    if given.get("labels") != "list":
        kept.pop("activities", None)
    asked_for({**kept, "epsilon": BUDGETS[0]})
    return JobRequest(form={**kept, "sizes": json.dumps(to_plain(measured.sizes))})


def forecast_releases(task: WorkerTask, progress: Progress) -> Forecast:
    """Try what the request says at all budgets. What there is so far is written down, for whoever waits."""
    form = dict(task.request.form)
    sizes = from_plain(Sizes, json.loads(form.pop("sizes")))
    twins = 2 if sizes.cases * sizes.length > _LARGE else TWINS
    found, until = Forecast(), time.monotonic() + _SECONDS
    for done, epsilon in enumerate(_IN_TURN):
        if time.monotonic() > until:
            break
        progress(gettext("Trying ε = {epsilon}", epsilon=localised(epsilon)), done / len(_IN_TURN))
        try:
            expected = expectation(asked_for({**form, "epsilon": epsilon}), sizes, twins=twins, owner_only=True)
        except VeilogError as error:
            return replace(found, problem=clean(str(error)))
        points = sorted((*found.points, (epsilon, expected)), key=lambda point: float(point[0]))
        found = replace(found, points=tuple(points))
        with contextlib.suppress(VeilogError), atomic_target(Path(task.out) / RESULT) as file:
            file.write(to_text(found).encode())
    return found
