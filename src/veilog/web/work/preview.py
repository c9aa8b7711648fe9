"""The preview of a form: a release's queries and budget, and what is left then.

It makes no query and spends nothing. The guarantee is that of a plan on synthetic patients, found in a process of its
own. A form may request something large beyond any measure, so that process ends if it takes too long or too much
memory. What releases keep is the forecast.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from veilog._files import atomic_target
from veilog._language import format_number, gettext, percent
from veilog._plain import from_plain, to_plain
from veilog._process import GivenUp, Limited
from veilog.errors import UndeclaredError, VeilogError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.synthetic.twins import Sizes
from veilog.privacy.account.guarantee import Guarantee, Strength
from veilog.privacy.account.guessing_advantage import worth
from veilog.privacy.domain import FROM_LOG
from veilog.releasing.losses import losses_by_list
from veilog.releasing.preview import PATIENTS, TWINS, Preview, expectation, guarantee_of
from veilog.releasing.prior import PublicPrior
from veilog.releasing.request import ReleaseRequest
from veilog.report.explorer import clean
from veilog.report.words import figure
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord, ServerSettings
from veilog.web.jobs.results import Forecast, to_text
from veilog.web.jobs.worker import RESULT, Progress, WorkerTask
from veilog.web.work.accounts import InAccount, forecast_account
from veilog.web.work.request import FIELD, check_prior, complete_form, refuse_attributes, requested_options

_TRIALS = ThreadPoolExecutor(2, thread_name_prefix="preview")
_PATIENCE = 5.0
"""Seconds that a page waits for a guarantee."""
_DROWNED = 0.3
"""Share of cases with a wrong value from which an attribute gets a warning."""


@dataclass(frozen=True)
class Refused:
    """A form for which no release can be made."""

    problem: str
    parameter: str | None = None
    """Parameter with the error, if there is one."""
    again: bool = False
    """True if this may change in a moment, once a public file is read."""


_FIELD_OF = {"activities": "labels", "max_length": "longest"}
"""Field of the form that declares each of these public facts."""


@dataclass(frozen=True)
class FormPreview:
    """The queries and budget of a form's release, and what is left then."""

    plan: ReleaseRequest
    preview: Preview
    """Guarantee of the plan; None if it took too long, or was not requested."""
    late: bool
    """True if the guarantee is still being computed, or was given up."""
    given_up: bool
    """True if it took too long."""
    strength: Strength | None
    warnings: tuple[str, ...]
    """Warnings for the data owner only."""
    account: InAccount
    prior: JobRecord | None = None
    """Public file that the release would start from."""

    @property
    def lacking(self) -> Refused | None:
        """Return the first missing declaration, with its field."""
        facts = self.plan.undeclared
        if not facts:
            return None
        return Refused(clean(str(UndeclaredError(self.plan.method.name, facts))), _FIELD_OF[facts[0]])

    @property
    def blurred(self) -> tuple[tuple[str, float], ...]:
        """Return attributes within the budget, with the share of cases that noise changes.

        Noise alone gives these cases another value. For the data owner only; an attribute without listed values is
        missing.
        """
        return tuple((name, share) for name, share in self.preview.attribute_errors if share <= _DROWNED)


def preview_form(
    log: LogRecord,
    form: Mapping[str, str],
    settings: ServerSettings,
    *,
    dry_run: bool = True,
    prior: JobRecord | None = None,
) -> FormPreview | Refused:
    """Return the queries and budget of a form's release, and what is left then.

    Without a ``dry_run`` it has all but the guarantee. ``prior`` is the job that read the public file which the form
    names.
    """
    found: Guarantee | None = None
    late = given_up = False
    try:
        planned = requested_options(complete_form(form, log.cases)).seeded(settings.seed)
        refuse_attributes(planned, log)
        check_prior(form.get(FIELD, ""), prior, planned.method, log)
        sizes = _public_sizes(log, planned)
        asked = json.dumps({"plan": planned.to_json(), "sizes": sizes, "prior": prior is not None})
        found = _trial(asked).result(_PATIENCE) if dry_run else None
    except (TimeoutError, GivenUp) as error:
        late, given_up = True, isinstance(error, GivenUp)
    except VeilogError as error:
        again = prior is not None and not prior.ended
        return Refused(clean(str(error)), getattr(error, "parameter", None), again)
    cost = (planned.epsilon, planned.delta) if planned.bounded else None
    proven = cost is not None and (late or not dry_run or (found is not None and found.proven))
    preview = Preview(found, attribute_errors=tuple(planned.attribute_errors(log.cases).items()))
    return FormPreview(
        plan=planned,
        preview=preview,
        late=late,
        given_up=given_up,
        strength=worth(cost, cases=log.cases) if proven else None,
        warnings=_warnings(log, planned, preview),
        account=forecast_account(log, planned, cost, settings),
        prior=prior,
    )


def _public_sizes(log: LogRecord, planned: ReleaseRequest) -> dict[str, int]:
    """Return the sizes of the log that its owner declared public, for the queries."""
    measured, sizes = log.measured, dict[str, int]()
    if measured is not None and planned.declared.activities == FROM_LOG:
        sizes["activities"] = measured.statistics.activities
    if measured is not None and planned.declared.max_length == FROM_LOG:
        sizes["longest"] = measured.statistics.length_max
    return sizes


def guarantee_asked(asked: str) -> Guarantee:
    """Return the guarantee of a plan, given as JSON with the public sizes of its log."""
    given = json.loads(asked)
    planned = ReleaseRequest.from_json(given["plan"])
    if given["prior"]:  # synthetic patients start from other synthetic patients
        planned = replace(planned, prior=PublicPrior.of(hospital(PATIENTS, seed=2)))
    return guarantee_of(planned, **given["sizes"])


guarantee_beside = Limited(guarantee_asked, seconds=20, patience=120, memory=2 << 30)
"""Dry runs within limits: methods without gradients take under 2 seconds."""
atexit.register(guarantee_beside.end)


@lru_cache(maxsize=128)
def _trial(asked: str) -> Future[Guarantee]:
    """Start the dry run of a plan once; a later request finds it again."""
    return _TRIALS.submit(guarantee_beside, asked, guarantee_beside.over)


def give_up() -> None:
    """Give up all dry runs, running and waiting: the server stops."""
    _trial.cache_clear()
    guarantee_beside.give_up()


def _warnings(log: LogRecord, planned: ReleaseRequest, preview: Preview) -> tuple[str, ...]:
    """Return warnings for delta, attributes beyond the budget, and listed activities.

    Delta may be too large for this many cases. A listed activity may be missing in the log.
    """
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
    found += _missing_activities(log, planned) + _window_messages(log, planned)
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


def _missing_activities(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """Return for the owner what a list of activities loses, if the log's are known."""
    measured = log.measured
    if measured is None or measured.more_labels:
        return []
    found = losses_by_list(dict(zip(measured.labels, measured.label_events, strict=True)), planned.declared)
    return [clean(str(loss.message)) for loss in found]


def _window_messages(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """Return a warning for the owner if no event is in the declared window."""
    window, measured = planned.declared.window, log.measured
    if window is None or measured is None or not (measured.statistics.start and measured.statistics.end):
        return []
    first, last = (moment[:10] for moment in (measured.statistics.start, measured.statistics.end))
    if first < window[1].date().isoformat() and window[0].date().isoformat() <= last:
        return []
    return [gettext("The log has no event in the declared window of starts.")]


# The forecast --------------------------------------------------------------------------------------------------------

# The forecast: expected utility of releases at a few budgets, by the settings of a form.
#
# A worker tries it on synthetic logs that have the exact sizes of the log. Only the data owner sees it.
# It uses only the sizes of the log, and spends nothing.


BUDGETS = ("0.1", "0.3", "1", "3")
"""From well protected to weakly."""
_IN_TURN = ("1", "0.3", "0.1", "3")
"""Order of the trials: the usual budget first, which users wait for."""
_SECONDS = 60.0
"""Seconds after which no further trial begins."""
_LARGE = 50_000
"""Number of events from which two synthetic logs have to do, as each takes long."""
_OF_NO_MATTER = ("epsilon", "allow_no_protection", "subset", "unit", "without_person", FIELD)
"""Fields without effect on a trial: the unit acts by the number of its cases."""
_USUAL = (("labels", FROM_LOG), ("longest", FROM_LOG))
"""Answers that replace missing ones."""


def forecast_request(form: Mapping[str, str], log: LogRecord) -> JobRequest | None:
    """Return the forecast that a form requests; None if there can be none.

    It leaves out what makes no difference, so that no trial is repeated. A form with an error raises.
    """
    measured = log.measured
    if measured is None or measured.sizes is None:
        return None
    given = {name: value.strip() for name, value in complete_form(form, log.cases).items()}
    matters = {name: value for name, value in sorted(given.items()) if value and name not in _OF_NO_MATTER}
    kept = {name: value for name, value in matters.items() if (name, value) not in _USUAL}
    if given.get("unit", "case") == "case":
        kept.pop("max_cases", None)
    else:
        kept["unit"] = "person"
    if given.get("labels") != "list":
        kept.pop("activities", None)
    requested_options({**kept, "epsilon": BUDGETS[0]})
    return JobRequest(form={**kept, "sizes": json.dumps(to_plain(measured.sizes))})


def forecast_releases(task: WorkerTask, progress: Progress) -> Forecast:
    """Try the request at all budgets, and store each result for the waiting user."""
    form = dict(task.request.form)
    sizes = from_plain(Sizes, json.loads(form.pop("sizes")))
    twins = 2 if sizes.cases * sizes.length > _LARGE else TWINS
    found, until = Forecast(), time.monotonic() + _SECONDS
    for done, epsilon in enumerate(_IN_TURN):
        if time.monotonic() > until:
            break
        progress(gettext("Trying ε = {epsilon}", epsilon=format_number(epsilon)), done / len(_IN_TURN))
        try:
            expected = expectation(requested_options({**form, "epsilon": epsilon}), sizes, twins=twins, owner_only=True)
        except VeilogError as error:
            return replace(found, problem=clean(str(error)))
        points = sorted((*found.points, (epsilon, expected)), key=lambda point: float(point[0]))
        found = replace(found, points=tuple(points))
        with contextlib.suppress(VeilogError), atomic_target(Path(task.out) / RESULT) as file:
            file.write(to_text(found).encode())
    return found
