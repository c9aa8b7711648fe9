"""Time and highest memory of releases, comparisons and risks of large logs.

They are too large for memory or for pairs. ``release`` makes 2,000 variants with so many cases, releases them and
writes the release. ``compare`` and ``risk`` make so many variants a side: of the second log two fifths are the first's,
two fifths differ by one or two events, one fifth is new. ``questions`` asks for times, attributes and persons of a log
of so many events, read into memory or kept on disk. Both must give the same, as their digests show. ``--set size=N``
for other sizes. ``large-events`` releases logs on disk by evolve with times and two attributes, Parquet to Parquet.
``million-events`` does so for a synthetic hospital of a million events, with times and four attributes, from memory and
from disk.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmark import CPU, NO_LOG, PEAK, WALL, Cells, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read, write
from veilog.logs.storage.loader import store
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic import hospital as simulate
from veilog.logs.variants import Variants
from veilog.measures import compare
from veilog.measures.disclosure import risk
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import Unit, bound_units
from veilog.releasing.result import Release
from veilog.releasing.run import release

ACTIVITIES = 20
FIRST = 1_600_000_000_000_000
"""Microseconds since 1970 of the earliest start of a case; all start in the two years from then on."""


def made_up(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return so many walks of 5 to 24 activities on a graph: padded matrix, lengths."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(np.random.default_rng(7).dirichlet(np.full(ACTIVITIES, 0.3), size=ACTIVITIES), axis=1)
    walks = np.zeros((number, 24), dtype=np.int32)
    walks[:, 0] = rng.integers(0, 3, size=number)
    for place in range(1, 24):
        ahead = (steps[walks[:, place - 1]] < rng.random(number)[:, None]).sum(axis=1)
        walks[:, place] = np.minimum(ahead, ACTIVITIES - 1)
    return walks, rng.integers(5, 25, size=number)


def variants_of(walks: np.ndarray, lengths: np.ndarray, counts: np.ndarray) -> Variants:
    codes = walks[np.arange(walks.shape[1]) < lengths[:, None]]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Variants.from_arrays([f"activity {i:02}" for i in range(ACTIVITIES)], codes, offsets, counts)


def pair(number: int) -> tuple[Variants, Variants]:
    rng = np.random.default_rng(1)
    walks, lengths = made_up(number, 2)
    counts = [np.minimum(rng.zipf(2.2, size=number), 5000) for _ in range(2)]
    first = variants_of(walks, lengths, counts[0])
    kept = 2 * number // 5
    new, new_lengths = made_up(number - 2 * kept, 3)
    other, other_lengths = np.concatenate([walks[: 2 * kept], new]), np.concatenate([lengths[: 2 * kept], new_lengths])
    for changed in (np.arange(kept, 2 * kept), np.arange(kept + kept // 2, 2 * kept)):
        place = (rng.random(len(changed)) * other_lengths[changed]).astype(int)
        other[changed, place] = rng.integers(0, ACTIVITIES, size=len(changed))
    return first, variants_of(other, other_lengths, counts[1])


def make(events: int, target: Path, *, diverse: bool = False) -> None:
    """Write a log in the order of its times; every two cases are of one person.

    Cases overlap. The log has 2,032 variants at any size, or ever more if ``diverse``: a tenth of its events then have
    any activity.
    """
    rng = np.random.default_rng(1)
    lengths = rng.integers(4, 11, size=events // 7)
    total = int(lengths.sum())
    owner = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    place = (np.arange(total, dtype=np.int32) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int8)
    codes = np.minimum(place // 2 * 2 + rng.integers(0, 2, size=total).astype(np.int8), 11)
    if diverse:
        codes = np.where(rng.random(total) < 0.1, rng.integers(0, 12, size=total).astype(np.int8), codes)
    times = np.repeat(rng.integers(0, 2 * 365 * 86_400, size=len(lengths)), lengths)
    times += place * np.int64(3600)
    times += rng.integers(0, 3600, size=total)
    times = times * 1_000_000 + FIRST
    order = np.argsort(times, kind="stable")
    writer = None
    for start in range(0, total, 1 << 20):
        rows = order[start : start + (1 << 20)]
        table = pa.table(
            {
                "case:concept:name": pa.array(owner[rows]).cast(pa.string()),
                "concept:name": _labels("activity", codes[rows]),
                "time:timestamp": pa.array(times[rows]).cast(pa.timestamp("us", tz="UTC")),
                "org:resource": _labels("resource", rng.integers(0, 40, size=len(rows))),
                "cost": pa.array(rng.random(len(rows)) * 100),
                "case:person": pa.array(owner[rows] // 2).cast(pa.string()),
                "case:urgency": pa.array(owner[rows] % 5),
            }
        )
        writer = writer or pq.ParquetWriter(target, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _labels(what: str, codes: np.ndarray) -> pa.Array:
    return pa.array([f"{what} {i}" for i in range(40)]).take(pa.array(codes))


def measure(given: Given, cell: Cell) -> Measured:
    what, size = str(cell.get("what")), int(cell.get("size"))
    if what == "release":
        costs, text = timed(partial(released, cell.method, size, given.folder / "out.parquet"))
    elif what == "compare":
        first, second = pair(size)
        costs, result = timed(partial(compare, first, second, progress=lambda text, fraction: None))
        least, most = result.intervals.get("relative_log_similarity", (result.relative_log_similarity,) * 2)
        text = f"similarity from {least:.3f} to {most:.3f}"
    elif what == "risk":
        kind, _, length = str(cell.get("which")).partition(" ")
        log, _ = pair(size)
        costs, (found,) = timed(partial(risk, log, kind, int(length)))
        text = f"{found.case_disclosure:.6g}{'' if found.exact else ', estimated'}"
    else:
        path = given.folder / f"log-{size}.parquet"
        if not path.exists():
            make(size, path)
        costs, text = timed(lambda: questions(opened(path, str(cell.get("how")))))
    return Measured(costs, texts={"result": text})


def released(method: str, cases: int, target: Path) -> str:
    walks, lengths = made_up(2000, 2)
    weights = 1 / np.arange(1, 2001) ** 1.1
    log = variants_of(walks, lengths, np.random.default_rng(1).multinomial(cases, weights / weights.sum()))
    made = release(log, method, domain=ALL_FROM_LOG, epsilon=1, delta="1e-9" if method == "travas" else 0)
    made.save(target, overwrite=True)
    megabytes = target.stat().st_size // 1_000_000
    target.unlink()
    return f"{made.variants.cases:,} cases, {made.variants.events:,} events, {megabytes:,} MB"


def opened(path: Path, how: str) -> EventLog:
    log = store(path, memory_limit="1GB") if how == "disk" else read(path)
    assert log is not None, "this log can be kept on disk"
    return log


def with_events(given: Given, cell: Cell) -> Measured:
    path = given.folder / f"log-{cell.get('size')}.parquet"
    if not path.exists():
        make(int(cell.get("size")), path)
    costs, text = timed(partial(enriched, path, given.folder / "out.parquet"))
    return Measured(costs, texts={"result": text})


def enriched(path: Path, target: Path) -> str:
    made = with_times(opened(path, "disk"))
    made.save(target, overwrite=True)
    target.unlink()
    return f"{made.variants.events:,} events"


def with_times(log: EventLog | StoredLog) -> Release:
    """Return a release by evolve with times and two attributes with declared domains."""
    first = datetime.fromtimestamp(FIRST // 1_000_000)
    facts = Domain(
        [f"activity {i}" for i in range(12)],
        window=(first, first + timedelta(days=2 * 365 + 1)),
        attributes={"urgency": (0, 4), "org:resource": [f"resource {i}" for i in range(40)]},
    )
    asked = {"times": "0.3", "attributes": ["org:resource", "urgency"], "attributes_share": "0.2"}
    return release(log, "evolve", domain=facts, epsilon=1, seed=1, **asked)


def of_hospital(given: Given, cell: Cell) -> Measured:
    """Release the synthetic hospital with times and four attributes, two of events.

    The digest is of the file.
    """
    path, target = given.folder / f"hospital-{cell.get('size')}.parquet", given.folder / "out.parquet"
    if not path.exists():
        write(simulate.hospital(int(cell.get("size")), 3), path)
    staff = pq.read_table(path, columns=["org:resource"]).column(0).unique().drop_null().to_pylist()
    ages = ("0-17", "18-39", "40-59", "60-79", "80+")
    facts = Domain(
        simulate.ACTIVITIES,
        window=(datetime(2024, 1, 1), datetime(2026, 1, 5)),
        attributes={"age group": ages, "urgency": (1, 5), "cost": (0, 3000), "org:resource": sorted(staff)},
    )
    asked = {"times": "0.3", "attributes": list(facts.attributes), "attributes_share": "0.3"}

    def work() -> str:
        made = release(opened(path, str(cell.get("how"))), "evolve", domain=facts, epsilon=1, seed=1, **asked)
        made.save(target, overwrite=True)
        return f"{made.variants.events:,} events"

    costs, text = timed(work)
    return Measured(costs, texts={"result": f"{text}, {hashlib.sha256(target.read_bytes()).hexdigest()[:16]}"})


def questions(log: EventLog) -> str:
    """Return a digest of the answers."""
    variants = log.variants
    curator = Curator(variants, log=log, domain=Domain(attributes={"cost": (0.0, 100.0)}), randomness=noise.seeded(1))
    few = Variants.from_arrays(variants.labels, variants.codes, variants.offsets, np.minimum(variants.counts, 5))
    cases = released_cases(few, np.random.default_rng(1))
    names = ("org:resource", "cost", "urgency")
    chosen, rest = choose(curator, names, Fraction(1), Fraction(1, 10**8), lambda text: None)
    times = released_times(curator, Fraction(1), cases, window=curator.events.window, remark=lambda text: None)
    columns = released_attributes(curator, rest, cases, chosen)
    one = bound_units(log, Unit("person", 1, "person"), noise.seeded(1))
    names_ = " ".join(sorted([*columns.events, *columns.cases]))
    return f"{len(curator.charges)} charges, {int(times.sum() % 10**9)} {names_}, {one.variants.cases:,} persons"


def only(what: str, *arguments: str, **settings: Any) -> Cells:
    """Return a grid of this work, which ``--set what=`` another leaves out."""
    cells = grid(*arguments, what=what, **settings)
    return lambda profile: cells(profile) if profile.options.get("what", what) == what else iter(())


_SIZE = {"logs": NO_LOG, "size": 10_000_000, "quick": {"size": 10_000}}
_PAIR = {"logs": NO_LOG, "size": 1_000_000, "quick": {"size": 1_000}}
_KINDS = tuple(f"{kind} {length}" for kind in ("set", "multiset", "sequence") for length in (1, 2, 3))
BENCHMARKS = (
    benchmark(
        "large-releases",
        "Releases, comparisons, risks and questions of many cases, on disk and in memory.",
        measure,
        [
            only("release", "evolve,travas", **_SIZE),
            only("compare", **_PAIR),
            only("risk", which=_KINDS, **_PAIR),
            only("questions", how=("disk", "memory"), **_SIZE),
        ],
        (CPU, WALL, PEAK, Column("result", "result", show="text")),
        runs=1,
        alone=True,
        page="results/performance.md",
    ),
    benchmark(
        "large-events",
        "Logs on disk with times and attributes.",
        with_events,
        grid("evolve", logs=NO_LOG, size=(1_000_000, 5_000_000, 50_000_000), quick={"size": 10_000}),
        (CPU, WALL, PEAK, Column("result", "result", show="text")),
        runs=1,
        alone=True,
        page="results/performance.md",
    ),
    benchmark(
        "million-events",
        "A million events with times and four attributes, from memory and from disk.",
        of_hospital,
        grid("evolve", logs=NO_LOG, size=134_500, how=("memory", "disk"), quick={"size": 1_000}),
        (CPU, WALL, PEAK, Column("result", "result", show="text")),
        runs=1,
        alone=True,
        page="results/performance.md",
    ),
)
