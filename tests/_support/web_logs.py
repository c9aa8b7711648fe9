"""Logs as the pages know them: read, asked for, released, without a server."""

import json
from pathlib import Path
from typing import Any

from veilog.web.jobs.records import JobRecord, LogRecord, Settings
from veilog.web.work import read_log, release_log

EVOLVE = {"method": "evolve", "epsilon": "1", "labels": "log"}


def silent(text: str, fraction: float | None) -> None:
    """Nobody watches."""


def written(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def read(path: Path, columns: dict[str, str] | None = None) -> dict[str, Any]:
    result = read_log(path, columns or {}, silent)
    assert len(json.dumps(result)) < 1_000_000
    return result


def job(kind: Any, result: dict[str, Any] | None, request: dict[str, str] | None = None) -> JobRecord:
    return JobRecord("b" * 32, "s", "a" * 32, kind, "done", request or {}, result, None, 0, 0, 0, "", None, 0, None)


def record(result: dict[str, Any] | None, columns: dict[str, str] | None = None) -> LogRecord:
    return LogRecord("a" * 32, "s", "log.xes", 10, 0.0, ".xes", columns or {}, job("read", result))


def released(path: Path, request: dict[str, str], settings: Settings, out: Path) -> dict[str, Any]:
    out.mkdir(exist_ok=True)
    result = release_log(path, {}, request, out, settings, silent)
    assert len(json.dumps(result)) < 1_000_000
    return result
