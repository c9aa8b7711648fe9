"""Sample logs, deterministic by seed: a hospital, and logs of many activities.

Nothing here protects a person: the people are made up, so a fast seeded generator is right. This is the only part of
veilog that may use one without a mention in a guarantee.
"""

from __future__ import annotations

import zlib
from collections.abc import Container
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.variants import Variants

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_START = 1_704_067_200
"""Monday, 1 January 2024, 00:00 UTC: the hospital opens."""

_RESOURCES: dict[str, tuple[str, int, int]] = {
    # activity: (role, how many people have it, cost of one execution)
    "Registration": ("Clerk", 4, 15),
    "Triage": ("Nurse", 9, 30),
    "Consultation": ("Physician", 8, 90),
    "Blood test": ("Laboratory", 5, 40),
    "Urine test": ("Laboratory", 5, 20),
    "ECG": ("Nurse", 9, 35),
    "X-ray": ("Radiology", 3, 80),
    "CT scan": ("Radiology", 3, 250),
    "Medication": ("Nurse", 9, 25),
    "Admission": ("Clerk", 4, 60),
    "Ward round": ("Physician", 8, 70),
    "Surgery": ("Surgeon", 4, 2400),
    "Intensive care": ("Intensivist", 3, 1800),
    "Transfer": ("Clerk", 4, 300),
    "Discharge": ("Physician", 8, 45),
    "Death": ("Physician", 8, 0),
}
ACTIVITIES = tuple(_RESOURCES)
_CODE = {name: code for code, name in enumerate(ACTIVITIES)}
_TESTS = ("Blood test", "Urine test", "ECG", "X-ray", "CT scan")
_TEST_SHARE = np.array(
    # share of patients who get each test, by urgency 1 (at once) to 5 (can wait)
    [
        [0.95, 0.40, 0.85, 0.50, 0.40],
        [0.90, 0.35, 0.65, 0.40, 0.20],
        [0.70, 0.30, 0.30, 0.35, 0.06],
        [0.25, 0.12, 0.08, 0.30, 0.01],
        [0.08, 0.05, 0.02, 0.10, 0.00],
    ]
)
_URGENCY_SHARE = (0.02, 0.13, 0.40, 0.35, 0.10)
_ADMITTED = np.array([0.85, 0.55, 0.22, 0.04, 0.01])
_AGES = ("0-17", "18-39", "40-59", "60-79", "80+")
_AGE_SHARE = (0.14, 0.24, 0.22, 0.27, 0.13)


@dataclass
class _Diary:
    """Record of a simulation: for each step the cases, the activity and the second."""

    case: list[IntArray] = field(default_factory=list)
    code: list[npt.NDArray[np.int8]] = field(default_factory=list)
    second: list[IntArray] = field(default_factory=list)

    def note(self, who: IntArray, activity: str, when: FloatArray) -> None:
        self.case.append(who)
        self.code.append(np.full(len(who), _CODE[activity], dtype=np.int8))
        self.second.append(when.astype(np.int64))


def hospital(cases: int, seed: int = 0) -> EventLog:
    """Return a log of an emergency department and its wards.

    It has tests in any order, loops, returns, rare and fatal courses. The same ``cases`` and ``seed`` give the same
    log. A case has about eight events.
    """
    if cases < 0:
        raise ParameterError("simulation-cases-out-of-range", parameter="cases", cases=cases)
    rng = np.random.default_rng(seed)
    arrival = _arrivals(rng, cases)
    urgency = rng.choice(5, size=cases, p=_URGENCY_SHARE)
    age = rng.choice(5, size=cases, p=_AGE_SHARE)
    diary = _Diary()
    who, clock = np.arange(cases), arrival
    for _ in range(4):
        who, clock = _visit(rng, diary, who, clock, urgency[who], age[who])
        if not len(who):
            break
    case, code, second = _sort_events(diary, arrival)
    return EventLog(
        events=_event_table(rng, case, code, second),
        cases=pa.table(
            {
                ACTIVITY: _number_names("P", cases),
                "age group": _labels(age, _AGES),
                "urgency": pa.array(urgency + 1, pa.int64()),
            }
        ),
        metadata=_metadata(),
        source=f"simulated hospital, {cases} cases, seed {seed}",
    )


def draw_starts(log: EventLog, seed: int = 0, overlapping: Container[str] = ()) -> EventLog:
    """Return the log with made-up starts of its events (``start_timestamp``).

    An activity takes one to thirty minutes, by its name. The logarithm of that time is normal with a deviation of a
    half. But for ``overlapping`` activities, it is no longer than since the event before.
    """
    rng = np.random.default_rng(seed)
    labels, codes = log.activity_codes
    times, inner = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy(), np.ones(len(codes), dtype=np.bool_)
    inner[log.offsets[:-1][np.diff(log.offsets) > 0]] = False
    minutes = np.array([1 + zlib.crc32(label.encode()) % 30 for label in labels])
    took = minutes[codes] * _MINUTE * rng.lognormal(0.0, 0.5, len(codes))
    gap = np.where(inner, np.diff(times, prepend=times[:1]) / 1e6, np.inf)
    free = np.array([label in overlapping for label in labels], dtype=np.bool_)
    took = np.floor(np.where(free[codes], took, np.minimum(took, gap))).astype(np.int64)
    began = pa.array(times - took * 1_000_000).cast(TIMESTAMP_TYPE)
    return replace(log, events=log.events.append_column(START, began))


def _arrivals(rng: np.random.Generator, cases: int) -> FloatArray:
    """Return sorted arrival seconds, with the rush of days and weeks.
    Few arrive at night, most before noon, fewer at the weekend; 80 a day or within two years."""
    hour = np.array([3, 2, 2, 2, 2, 3, 4, 6, 9, 11, 12, 11, 10, 10, 9, 9, 9, 9, 8, 8, 7, 6, 5, 4], dtype=float)
    day = np.array([1.25, 1.1, 1.0, 1.0, 1.05, 0.85, 0.8])
    weights = np.outer(day, hour).ravel()
    weeks = int(np.clip(np.ceil(cases / (80 * 7)), 1, 104))
    slot = rng.choice(168, size=cases, p=weights / weights.sum())
    when = rng.integers(0, weeks, size=cases) * 7 * _DAY + slot * _HOUR + rng.integers(0, _HOUR, size=cases)
    return np.sort(when).astype(np.float64)


def _draw_time_after(rng: np.random.Generator, clock: FloatArray, minutes: float, spread: float = 0.6) -> FloatArray:
    """Return a log-normal time after ``clock`` with this median."""
    return clock + minutes * _MINUTE * rng.lognormal(0.0, spread, size=len(clock))


def _visit(
    rng: np.random.Generator, diary: _Diary, who: IntArray, clock: FloatArray, urgency: IntArray, age: IntArray
) -> tuple[IntArray, FloatArray]:
    """Simulate one stay up to the door; return who comes back, and when."""
    clock = _emergency(rng, diary, who, clock, urgency)
    admitted = rng.random(len(who)) < np.clip(_ADMITTED[urgency] * (0.6 + 0.2 * age), 0, 0.95)
    home = ~admitted
    leave = _draw_time_after(rng, clock, 25)
    diary.note(who[home], "Discharge", leave[home])
    alive = np.ones(len(who), dtype=bool)
    alive[admitted], leave[admitted] = _ward(rng, diary, who[admitted], clock[admitted], urgency[admitted])
    back = alive & (rng.random(len(who)) < np.where(admitted, 0.14, 0.05))
    return who[back], _draw_time_after(rng, leave[back], 9 * _DAY / _MINUTE, 0.9)


def _emergency(
    rng: np.random.Generator, diary: _Diary, who: IntArray, clock: FloatArray, urgency: IntArray
) -> FloatArray:
    at_desk = clock
    seen = _draw_time_after(rng, clock, 8)
    first = (urgency == 0) & (rng.random(len(who)) < 0.7)  # emergencies are seen before anyone asks their name
    diary.note(who, "Registration", np.where(first, seen, at_desk))
    diary.note(who, "Triage", np.where(first, at_desk, seen))
    start = np.maximum(at_desk, seen)

    # Tests run side by side, so their order is a race.
    ready = start.copy()
    for column, test in enumerate(_TESTS):
        share = _TEST_SHARE[urgency, column]
        taken = rng.random(len(who)) < share
        done = _draw_time_after(rng, start[taken], 28 if column < 3 else 45, 0.45)
        diary.note(who[taken], test, done)
        ready[taken] = np.maximum(ready[taken], done)

    early = rng.random(len(who)) < 0.15
    consulted = np.where(early, _draw_time_after(rng, start, 20), _draw_time_after(rng, ready, 22))
    diary.note(who, "Consultation", consulted)
    clock = np.maximum(consulted, ready)
    treated = rng.random(len(who)) < np.array([0.9, 0.7, 0.45, 0.3, 0.2])[urgency]
    diary.note(who[treated], "Medication", _draw_time_after(rng, clock[treated], 12))

    # Doubtful results: test again, ask the physician again.
    again = np.flatnonzero(rng.random(len(who)) < np.array([0.3, 0.2, 0.12, 0.04, 0.01])[urgency])
    for _ in range(5):
        if not len(again):
            break
        result = _draw_time_after(rng, clock[again], 40, 0.3)
        blood = rng.random(len(again)) < 0.7
        diary.note(who[again[blood]], "Blood test", result[blood])
        diary.note(who[again[~blood]], "X-ray", result[~blood])
        clock[again] = _draw_time_after(rng, result, 25, 0.3)
        diary.note(who[again], "Consultation", clock[again])
        again = again[rng.random(len(again)) < 0.35]
    return clock + 15 * _MINUTE


def _ward(
    rng: np.random.Generator, diary: _Diary, who: IntArray, clock: FloatArray, urgency: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Simulate days on the ward; return who is alive at the end, and when they left."""
    clock = _draw_time_after(rng, clock, 50)
    diary.note(who, "Admission", clock)
    count = len(who)
    surgery = rng.random(count) < 0.09
    clock[surgery] = _draw_time_after(rng, clock[surgery], 240)
    diary.note(who[surgery], "Surgery", clock[surgery])
    critical = rng.random(count) < np.where(surgery, 0.25, np.array([0.25, 0.08, 0.02, 0.01, 0.0])[urgency])
    clock[critical] = _draw_time_after(rng, clock[critical], 120)
    diary.note(who[critical], "Intensive care", clock[critical])
    clock[critical] += rng.exponential(2.0, size=int(critical.sum())) * _DAY

    staying = np.arange(count)
    for _ in range(60):
        if not len(staying):
            break
        morning = (np.floor(clock[staying] / _DAY) + 1) * _DAY + 8 * _HOUR
        clock[staying] = morning + rng.integers(0, 2 * _HOUR, size=len(staying))
        diary.note(who[staying], "Ward round", clock[staying])
        draw = rng.random(len(staying))
        for activity, chosen in (("Blood test", draw < 0.14), ("Medication", (draw > 0.1) & (draw < 0.4))):
            diary.note(who[staying[chosen]], activity, _draw_time_after(rng, clock[staying[chosen]], 60))
        staying = staying[rng.random(len(staying)) < np.where(critical[staying], 0.75, 0.55)]

    end = clock + rng.integers(3 * _HOUR, 8 * _HOUR, size=count)
    fate = rng.random(count)
    dead = fate < np.where(critical, 0.12, 0.015)
    moved = ~dead & (fate > 0.975)
    diary.note(who[dead], "Death", end[dead])
    diary.note(who[moved], "Transfer", end[moved])
    home = ~dead & ~moved
    diary.note(who[home], "Discharge", end[home])
    return home, end


def _sort_events(diary: _Diary, arrival: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    case = np.concatenate(diary.case)
    second = np.concatenate(diary.second)
    # Case and time since arrival in one integer: one stable sort instead of two.
    key = (case << 33) + (second - np.floor(arrival).astype(np.int64)[case])
    order = np.argsort(key, kind="stable")
    return case[order], np.concatenate(diary.code)[order].astype(np.int64), second[order]


def _event_table(rng: np.random.Generator, case: IntArray, code: IntArray, second: IntArray) -> pa.Table:
    people = [f"{role} {i + 1}" for role, number, _ in dict.fromkeys(_RESOURCES.values()) for i in range(number)]
    people = list(dict.fromkeys(people))
    first = np.array([people.index(f"{role} 1") for role, _, _ in _RESOURCES.values()])
    number = np.array([number for _, number, _ in _RESOURCES.values()])
    # Two shifts: the same activity is done by other people at night than by day.
    hour = second // _HOUR % 24
    shift = ((hour >= 19) | (hour < 7)).astype(np.int64)
    person = first[code] + (rng.integers(0, 1 << 20, size=len(code)) * 2 + shift) % number[code]
    blood = code == _CODE["Blood test"]
    leucocytes = np.round(np.exp(rng.normal(2.2, 0.5, size=len(code))), 1)
    cost = np.array([cost for _, _, cost in _RESOURCES.values()])
    return pa.table(
        {
            CASE_INDEX: pa.array(case, pa.int64()),
            EVENT_INDEX: pa.array(np.arange(len(case)), pa.int64()),
            ACTIVITY: _labels(code, ACTIVITIES),
            TIMESTAMP: pa.array((second + _START) * 1_000_000, pa.int64()).cast(TIMESTAMP_TYPE),
            "lifecycle:transition": _labels(np.zeros(len(code), dtype=np.int32), ("complete",)),
            "org:resource": _labels(person, people),
            "leucocytes": pa.array(leucocytes, pa.float64(), mask=~blood),
            "cost": pa.array(cost[code], pa.int64()),
        }
    )


def _labels(codes: npt.NDArray[np.integer], labels: tuple[str, ...] | list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(labels, pa.string()))


def _number_names(prefix: str, count: int) -> pa.Array:
    digits = max(6, len(str(count)))
    names = pc.utf8_lpad(pa.array(np.arange(1, count + 1)).cast(pa.string()), digits, "0")
    return pc.binary_join_element_wise(pa.scalar(prefix), names, "")


def _metadata() -> Metadata:
    text = "__INVALID__"
    return Metadata(
        features="nested-attributes",
        version="1.0",
        extensions=(
            ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
            ("Time", "time", "http://www.xes-standard.org/time.xesext"),
            ("Lifecycle", "lifecycle", "http://www.xes-standard.org/lifecycle.xesext"),
            ("Organizational", "org", "http://www.xes-standard.org/org.xesext"),
        ),
        globals=(
            ("trace", (Attribute("concept:name", text, "string"),)),
            ("event", (Attribute("concept:name", text, "string"), Attribute("org:resource", text, "string"))),
        ),
        classifiers=(("Activity", "concept:name", "event"), ("Resource", "org:resource", "event")),
        attributes=(Attribute("concept:name", "Simulated hospital", "string"),),
    )


def wide(cases: int, activities: int, mean_length: float, seed: int = 0) -> EventLog:
    """Return a log of many activities for benchmarks, with alike starts of cases.

    Every case soon goes its own way. From each activity a few successors are likely and all others possible. So
    variants are few at the head and unique in the tail, as in logs of loan applications or treatments.
    """
    code, offsets = _walks(cases, activities, mean_length, seed)
    source = f"simulated log, {cases} cases, {activities} activities, seed {seed}"
    return add_times(_activity_names(activities), code, offsets, seed, source)


def add_times(labels: tuple[str, ...], code: Int32Array, offsets: IntArray, seed: int, source: str) -> EventLog:
    """Return a log of cases with these activities and made-up times.

    Cases start at any time of a year and go on every few hours.
    """
    cases = len(offsets) - 1
    rng = np.random.default_rng([seed, 1])
    case = np.repeat(np.arange(cases), np.diff(offsets))
    gap = rng.exponential(2 * _HOUR, size=len(code)).astype(np.int64) + 1
    elapsed = np.cumsum(gap)
    begin = np.where(np.diff(offsets) > 0, elapsed[np.minimum(offsets[:-1], max(len(code) - 1, 0))], 0) if cases else 0
    arrival = np.sort(rng.integers(0, 365 * _DAY, size=cases))
    second = elapsed + np.repeat(arrival - begin, np.diff(offsets))
    return EventLog(
        events=pa.table(
            {
                CASE_INDEX: pa.array(case, pa.int64()),
                EVENT_INDEX: pa.array(np.arange(len(code)), pa.int64()),
                ACTIVITY: _labels(code, labels),
                TIMESTAMP: pa.array((second + _START) * 1_000_000, pa.int64()).cast(TIMESTAMP_TYPE),
            }
        ),
        cases=pa.table({ACTIVITY: _number_names("C", cases)}),
        source=source,
    )


def variants_only(cases: int, activities: int, mean_length: float, seed: int = 0) -> Variants:
    """Return the variants of :func:`wide` without building the log."""
    code, offsets = _walks(cases, activities, mean_length, seed)
    return Variants.from_arrays(_activity_names(activities), code, offsets)


def _activity_names(activities: int) -> tuple[str, ...]:
    digits = len(str(max(activities - 1, 0)))
    return tuple(f"A{i:0{digits}d}" for i in range(activities))


def _walks(cases: int, activities: int, mean_length: float, seed: int) -> tuple[Int32Array, IntArray]:
    if cases < 0:
        raise ParameterError("simulation-cases-out-of-range", parameter="cases", cases=cases)
    if activities < 1:
        raise ParameterError("simulation-activities-out-of-range", parameter="activities", activities=activities)
    if not 1 <= mean_length < float("inf"):
        raise ParameterError("simulation-length-too-small", parameter="mean_length", mean_length=mean_length)
    rng = np.random.default_rng([seed, 0])
    lengths = 1 + rng.poisson((mean_length - 1) * rng.gamma(6.0, 1 / 6.0, size=cases))
    offsets = np.zeros(cases + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    likely = rng.integers(0, activities, size=(activities, 4))
    code = np.empty(int(offsets[-1]), dtype=np.int32)
    alive = np.arange(cases)
    state = np.zeros(cases, dtype=np.int64)
    step = 0
    while len(alive):
        code[offsets[alive] + step] = state[alive]
        step += 1
        alive = alive[lengths[alive] > step]
        choice = rng.choice(5, size=len(alive), p=(0.55, 0.22, 0.11, 0.07, 0.05))
        jump = rng.integers(0, activities, size=len(alive))
        state[alive] = np.where(choice < 4, likely[state[alive], np.minimum(choice, 3)], jump)
    return code, offsets
