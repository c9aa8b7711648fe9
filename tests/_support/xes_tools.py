"""Tools for tests of XES: traces and events in short, and their results."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from veilog.errors import InputError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Policy

Reader = Callable[..., EventLog]

EVENT = '<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2020-01-01T00:00:00Z"/></event>'


def trace(*events: str, name: str | None = "c") -> str:
    head = "" if name is None else f'<string key="concept:name" value="{name}"/>'
    return f"<trace>{head}{''.join(events)}</trace>"


def event(inner: str = "", time: str | None = "2020-01-01T00:00:00Z", name: str | None = "a") -> str:
    head = "" if name is None else f'<string key="concept:name" value="{name}"/>'
    date = "" if time is None else f'<date key="time:timestamp" value="{time}"/>'
    return f"<event>{head}{date}{inner}</event>"


def refusal(read: Reader, document: str | bytes, **policies: Policy) -> InputError:
    with pytest.raises(InputError) as caught:
        read(document, **policies)
    assert caught.value.path is not None
    return caught.value


def values(log: EventLog, name: str) -> list[object]:
    column = log.events.column(name)
    if pa.types.is_timestamp(column.type):
        return [None if v is None else v.isoformat() for v in column.to_pylist()]
    return list(column.to_pylist())


def found(log: EventLog) -> dict[str, tuple[int, int | None]]:
    return {f.rule: (f.count, f.line) for f in log.findings}
