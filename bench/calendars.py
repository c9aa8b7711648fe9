"""Synthetic logs with kinds of times that the real logs lack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog

HOUR, DAY = 3_600, 86_400
BEGIN = 1_704_067_200  # Monday, 2024-01-01

Cases = list[tuple[Sequence[str], np.ndarray]]


def log_of(name: str, cases: Cases) -> EventLog:
    """Return the log of these cases, each with its activities and their seconds."""
    codes = np.repeat(np.arange(len(cases)), [len(names) for names, _ in cases])
    seconds = np.concatenate([np.asarray(when, dtype=np.int64) for _, when in cases])
    events = {
        CASE_INDEX: pa.array(codes, pa.int64()),
        EVENT_INDEX: pa.array(np.arange(len(codes)), pa.int64()),
        ACTIVITY: pa.array([one for names, _ in cases for one in names]).dictionary_encode(),
        TIMESTAMP: pa.array(seconds * 1_000_000, pa.int64()).cast(TIMESTAMP_TYPE),
    }
    return EventLog(pa.table(events), pa.table({ACTIVITY: [f"C{i}" for i in range(len(cases))]}), source=name)


def slow_or_fast() -> EventLog:
    """Return cases of one variant: six of ten take a month a step, others a minute.

    Nothing else distinguishes them.
    """
    rng, cases = np.random.default_rng(14), []
    for _ in range(5_000):
        slow = rng.random() < 0.6
        gaps = rng.uniform(30 * DAY, 45 * DAY, 4) if slow else rng.uniform(30, 90, 4)
        begin = BEGIN + rng.uniform(0, 300) * DAY
        cases.append(("abcde", begin + np.concatenate([[0], np.cumsum(gaps)])))
    return log_of("slow or fast", cases)


def night_jobs() -> EventLog:
    """Return orders by day, with five steps at once at two in the following night.

    A few cases come back after a month.
    """
    rng, cases = np.random.default_rng(5), []
    for _ in range(4_000):
        day = BEGIN + int(rng.integers(200)) * DAY
        night = day + DAY + 2 * HOUR
        names = ["order", "validate", "price", "reserve", "confirm", "pick", "ship"]
        when = [day + HOUR * rng.uniform(8, 20), *[night] * 5, night + DAY * rng.integers(1, 6)]
        if rng.random() < 0.08:
            names, when = [*names, "return"], [*when, night + 30 * DAY]
        cases.append((names, np.array(when)))
    return log_of("night jobs", cases)


def office_hours() -> EventLog:
    """Return cases with all events on weekdays from eight to five."""
    rng, cases = np.random.default_rng(2), []
    for _ in range(5_000):
        names = ["submit", "check", "assess"]
        while rng.random() < 0.3:
            names += ["ask", "answer", "assess"]
        names += ["decide", "close"]
        middle = {"ask": 2.0, "assess": 1.5, "submit": -1.0}
        gaps = np.array([DAY * rng.lognormal(middle.get(name, 0.5), 0.7) for name in names[:-1]])
        planned = BEGIN + rng.uniform(0, 700) * DAY + np.concatenate([[0], np.cumsum(gaps)])
        day, hour = np.divmod(planned, DAY)
        weekday = (day + 3) % 7
        day += np.select([weekday == 5, weekday == 6], [2, 1], 0)
        cases.append((names, np.sort(day * DAY + HOUR * (8 + 9 * hour / DAY))))
    return log_of("office hours", cases)


def dates() -> EventLog:
    """Return cases whose times are days: midnight, often the same for several events."""
    rng, cases = np.random.default_rng(1), []
    for _ in range(2_000):
        names = ["receive", "check", "approve", *(["second approve"] if rng.random() < 0.25 else []), "pay"]
        names += ["remind", "pay again"] if rng.random() < 0.1 else []
        gaps = [rng.choice([0, 0, 1, 1, 2, 3, 5]) if one != "approve" else rng.choice([14, 30, 60]) for one in names]
        begin = BEGIN // DAY + rng.integers(365)
        cases.append((names, (begin + np.concatenate([[0], np.cumsum(gaps[:-1])])) * DAY))
    return log_of("dates", cases)


KINDS: dict[str, Callable[[], EventLog]] = {
    "slow or fast, 5,000 cases": slow_or_fast,
    "night jobs, 4,000 cases": night_jobs,
    "office hours, 5,000 cases": office_hours,
    "dates, 2,000 cases": dates,
}


def court_days() -> EventLog:
    """Return hearings weeks apart, on Tuesdays and Thursdays from nine to twelve.

    Letters have any day of the week.
    """
    rng, cases = np.random.default_rng(31), []
    for _ in range(2_000):
        names = ["file", "hear", *["letter", "hear"] * int(rng.integers(0, 3)), "judge"]
        gaps = np.cumsum([0, *(DAY * rng.lognormal(2.3, 0.6, len(names) - 1))])
        day = (BEGIN + rng.uniform(0, 600) * DAY + gaps) // DAY
        week, at = np.divmod(day + 3, 7)
        court = np.array([name != "letter" for name in names])
        at = np.where(court, np.where(at < 2.5, 1, 3), at)
        cases.append((names, np.sort((week * 7 + at - 3) * DAY + HOUR * rng.uniform(9, 12, len(names)))))
    return log_of("court days", cases)


def quiet_nights() -> EventLog:
    """Return a ward's stays of hours to months, with quiet nights and weekends.

    At night a sixth of the events happen, at weekends half as many.
    """
    rng, cases = np.random.default_rng(32), []
    for _ in range(2_000):
        names = ["admit", *rng.choice(["visit", "test", "treat"], int(rng.geometric(0.25))), "leave"]
        gaps = DAY * np.sort(rng.lognormal(-0.7, 1.5, len(names) - 1))
        when = BEGIN + rng.uniform(0, 700) * DAY + np.concatenate([[0], np.cumsum(gaps)])
        night = (when % DAY < 7 * HOUR) | (when % DAY > 22 * HOUR)
        when += np.where(night & (rng.random(len(names)) < 0.6), 10 * HOUR, 0)
        when += np.where(((when // DAY + 3) % 7 >= 5) & (rng.random(len(names)) < 0.5), 2 * DAY, 0)
        cases.append((names, np.sort(when)))
    return log_of("quiet nights", cases)


def campaigns() -> EventLog:
    """Return cases of which six of ten start in three weeks of two years.

    One in twelve starts before the declared window.
    """
    rng, cases = np.random.default_rng(33), []
    for _ in range(2_000):
        burst = rng.choice([95, 310, 550]) + rng.uniform(0, 7)
        begin = burst if rng.random() < 0.6 else rng.uniform(0, 730)
        begin = rng.uniform(-200, 0) if rng.random() < 1 / 12 else begin
        names = [
            "call",
            "offer",
            *(["ask", "offer"] if rng.random() < 0.3 else []),
            "sell" if rng.random() < 0.4 else "end",
        ]
        gaps = np.cumsum([0, *rng.lognormal(np.log(HOUR) * np.array([1, *[1.3] * (len(names) - 2)]), 1.2)])
        cases.append((names, BEGIN + begin * DAY + gaps))
    return log_of("campaigns", cases)


FURTHER: dict[str, Callable[[], EventLog]] = {
    "court days": court_days,
    "quiet nights": quiet_nights,
    "campaigns": campaigns,
}
"""Logs on which no constant was chosen."""
