"""Splits: the logs of a cut's groups.

Where a cut was found after filtering, traces need not fit it: events that are in the way are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from veilog.mining.graph import BORDER, Log
from veilog.mining.tree import Operator

Table = Mapping[int, int | str | None]


def _add(log: dict[str, int], trace: str, cases: int) -> None:
    log[trace] = log.get(trace, 0) + cases


def dropped(log: Log, letters: str) -> dict[str, int]:
    """Return the log without these activities."""
    table: Table = dict.fromkeys(map(ord, letters))
    found: dict[str, int] = {}
    for trace, cases in log.items():
        _add(found, trace.translate(table), cases)
    return found


def _others(log: Log, group: str) -> str:
    """Return the activities of a log that are not in a group."""
    return "".join(set().union(*log) - set(group))


def _parallel(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Every group has of each trace its own events."""
    return [dropped(log, _others(log, group)) for group in groups]


def _choice(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """A trace goes to the group that has most of its events, the later one if two have, without the others' events."""
    tables: list[Table] = [dict.fromkeys(map(ord, _others(log, group))) for group in groups]
    of = {letter: number for number, group in enumerate(groups) for letter in group}
    parts: list[dict[str, int]] = [{} for _ in groups]
    for trace, cases in log.items():
        number = of.get(trace[:1], 0)
        kept = trace.translate(tables[number])
        if len(kept) < len(trace):
            own = [trace.translate(table) for table in tables]
            number = max(range(len(groups)), key=lambda i: (len(own[i]), i))
            kept = own[number]
        _add(parts[number], kept, cases)
    return parts


def _sequence(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Every group has a piece of each trace: up to where it has gained most, own events counted against later ones'."""
    table: Table = {ord(letter): len(groups) for letter in set().union(*log)}
    table = {**table, **{ord(letter): number for number, group in enumerate(groups) for letter in group}}
    parts: list[dict[str, int]] = [{} for _ in groups]
    for trace, cases in log.items():
        places = trace.translate(table)
        fits = "".join(sorted(places)) == places
        begin = 0
        for number, part in enumerate(parts):
            own = chr(number)
            end = begin + places.count(own, begin) if fits else _end_of(places, begin, own)
            piece = trace[begin:end]
            if not fits:
                piece = "".join(c for c, place in zip(piece, places[begin:end], strict=True) if place == own)
            _add(part, piece, cases)
            begin = end
    return parts


def _end_of(places: str, begin: int, own: str) -> int:
    """Return where the piece of a group ends that begins there: the first place at which it has gained most."""
    end, gain, best = begin, 0, 0
    for i in range(begin, places.rfind(own) + 1):
        if places[i] == own:
            gain += 1
            if gain > best:
                end, best = i + 1, gain
        elif places[i] > own:
            gain -= 1
    return end


def _loop(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Every run of a group's events is a trace of it; a trace that does not end with what is done ends with nothing."""
    do = groups[0]
    tables: list[Table] = [{ord(letter): BORDER for letter in _others(log, group)} for group in groups]
    parts: list[dict[str, int]] = [{} for _ in groups]
    for trace, cases in log.items():
        for part, table in zip(parts, tables, strict=True):
            for piece in trace.translate(table).split(BORDER):
                if piece:
                    _add(part, piece, cases)
        if trace[-1:] not in do or not trace:
            _add(parts[0], "", cases)
    return parts


SPLITS: Mapping[Operator, Callable[[Log, Sequence[str]], list[dict[str, int]]]] = {
    Operator.CHOICE: _choice,
    Operator.SEQUENCE: _sequence,
    Operator.PARALLEL: _parallel,
    Operator.LOOP: _loop,
}
