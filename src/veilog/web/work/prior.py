"""Something public about the process: a file from which a release starts, read by a worker before anything is asked."""

from __future__ import annotations

from pathlib import Path

from veilog._language import gettext
from veilog.errors import ParameterError
from veilog.logs.input.formats import known_suffixes
from veilog.methods import METHODS, Method
from veilog.releasing.prior import PublicPrior
from veilog.report.explorer import short
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.jobs.results import LogMeasures, ReadPrior
from veilog.web.jobs.worker import Progress
from veilog.web.work.exposure import LABEL

FIELD = "prior_file"
"""The field of a form that names the job which read the file."""
ENDINGS = (*known_suffixes(), ".bpmn", ".pnml", ".txt")
KEPT = 3
"""Files that are kept for a log: a job that waits may need an older one."""
_LABELS = 5_000


def file_of(out: Path) -> Path:
    """Return the file that a job has in its folder."""
    return next(out.glob("prior.*"), out / "prior")


def read_prior(out: Path, progress: Progress) -> ReadPrior:
    """Read the file in the folder of a job; it may be no log at all, which raises."""
    progress(gettext("The file is being read."), None)
    found = PublicPrior.of(file_of(out))
    assert found is not None, "there is a file"
    variants = found.variants
    return ReadPrior(variants.cases, len(variants), tuple(short(label, LABEL) for label in variants.labels[:_LABELS]))


def shared(prior: ReadPrior, log: LogMeasures) -> int:
    """Return how many of the activities that a page shows of a log are in the file, too."""
    return len(set(log.labels) & set(prior.labels))


def plan_from(plan: dict[str, object], prior: JobRecord | None, jobs: Path) -> dict[str, object]:
    """Return a plan as JSON with the file that it starts from."""
    return plan if prior is None else {**plan, "prior": [str(file_of(jobs / prior.id))]}


def check_prior(chosen: str, prior: JobRecord | None, method: Method, log: LogRecord) -> None:
    """Refuse a file that was not read, that is of another log, or that the method has no use for."""
    if chosen and (prior is None or prior.log != log.id or not isinstance(prior.result, ReadPrior)):
        raise ParameterError("prior-not-read", parameter=FIELD)
    if prior is not None and not method.takes_prior:
        able = ", ".join(name for name, one in METHODS.items() if one.takes_prior)
        raise ParameterError("method-without-prior", parameter=FIELD, name=method.name, able=able)
