"""The work behind the pages: jobs of worker processes, and previews without a log."""

from __future__ import annotations

from pathlib import Path

from veilog.errors import VeilogError
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.results import Result
from veilog.web.jobs.worker import Progress, WorkerTask
from veilog.web.work.log_reader import error_text, read_log
from veilog.web.work.preview import forecast_releases, preview_form
from veilog.web.work.release_job import release_log, write_again
from veilog.web.work.request import read_prior

__all__ = ["preview_form", "read_log", "release_log", "work_on", "write_again"]


def work_on(task: WorkerTask, settings: ServerSettings, progress: Progress) -> Result:
    """Do a job in a worker and return what the pages show of it.

    Its errors name no place of this machine.
    """
    out = Path(task.out)
    try:
        if task.kind == "read":
            return read_log(Path(task.path), task.columns, progress)
        if task.kind == "prior":
            return read_prior(out, progress)
        if task.kind == "forecast":
            return forecast_releases(task, progress)
        if task.request.write is not None:
            return write_again(out.parent / task.request.write, out, settings, progress)
        return release_log(task, settings, progress)
    except VeilogError as error:
        raise error_text(error) from error.__cause__
