"""Releases, comparisons and risks too large for memory or for pairs: CPU and wall seconds, and the highest memory.

    python bench/large_releases.py release --size 10000000 --target out.parquet
    python bench/large_releases.py compare --size 1000000
    python bench/large_releases.py risk --size 1000000
    python bench/large_releases.py make --size 10000000 --target log.parquet
    python bench/large_releases.py events --log log.parquet --how disk
    python bench/large_releases.py amun --log log.parquet --how disk --mode filtering --target out.parquet

``release`` makes up 2,000 variants with so many cases, releases them and writes the release. ``compare`` and ``risk``
make up so many variants a side: of the second log two fifths are the first's, two fifths differ by one or two events,
one fifth is new. ``make`` writes a log of so many events; ``events`` asks for times, attributes and persons of it, read
into memory or kept on disk. ``amun`` releases it by amun and writes the release. Each line printed is a JSON object
with the process's highest memory so far.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import veilog
from veilog import Domain, Variants
from veilog.logs.stored.store import store
from veilog.measures.disclosure import risk
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.attributes import choose, released_attributes
from veilog.methods._events.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import Unit, bounded

ACTIVITIES = 20
STARTED = time.perf_counter()


def told(**facts: Any) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = {"cpu": round(used.ru_utime + used.ru_stime, 1), "wall": round(time.perf_counter() - STARTED, 1)}
    print(json.dumps(facts | seconds | {"rss_mb": used.ru_maxrss // 1024}), flush=True)


def made_up(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many walks of 5 to 24 activities on a graph, as a padded matrix and lengths."""
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


def release(cases: int, target: Path, method: str) -> None:
    walks, lengths = made_up(2000, 2)
    weights = 1 / np.arange(1, 2001) ** 1.1
    log = variants_of(walks, lengths, np.random.default_rng(1).multinomial(cases, weights / weights.sum()))
    made = veilog.release(log, method, domain=ALL_FROM_LOG, epsilon=1, delta="1e-9" if method == "travas" else 0)
    told(step="release", method=method, cases=made.variants.cases, events=made.variants.events)
    made.save(target)
    told(step="save", target=target.name, megabytes=target.stat().st_size // 1_000_000)


def compare(number: int) -> None:
    first, second = pair(number)
    told(step="made up", variants=[len(first), len(second)])
    phases: list[str] = []

    def say(text: str, fraction: float | None) -> None:
        phase = text.partition(":")[0]
        if phases[-1:] != [phase]:
            phases.append(phase)
            told(step="begins", what=text)

    result = veilog.compare(first, second, progress=say)
    told(step="compare", intervals=result.to_json()["intervals"], not_computed=sorted(result.not_computed))


def risks(number: int) -> None:
    log, _ = pair(number)
    told(step="made up", variants=len(log))
    for kind in ("set", "multiset", "sequence"):
        for size in (1, 2, 3):
            (found,) = risk(log, kind, size)
            told(step="risk", background=kind, size=size, exact=found.exact, case_disclosure=found.case_disclosure)


def make(events: int, target: Path) -> None:
    """A log in the order of its times, so that cases overlap; every two cases are one person's."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(4, 11, size=events // 7)
    total = int(lengths.sum())
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    codes = np.minimum(place // 2 * 2 + rng.integers(0, 2, size=total), 11)
    starts = np.repeat(rng.integers(0, 2 * 365 * 86_400, size=len(lengths)), lengths)
    times = (starts + place * 3600 + rng.integers(0, 3600, size=total)) * 1_000_000 + 1_600_000_000_000_000
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
    told(step="make", events=total, cases=len(lengths), megabytes=target.stat().st_size // 1_000_000)


def _labels(what: str, codes: np.ndarray) -> pa.Array:
    return pa.array([f"{what} {i}" for i in range(40)]).take(pa.array(codes))


def events(path: Path, how: str, memory_limit: str) -> None:
    log = store(path, memory_limit=memory_limit) if how == "disk" else veilog.read(path)
    if log is None:
        raise SystemExit("this log cannot be kept on disk")
    told(step="read", how=how, pid=os.getpid())
    variants = log.variants
    told(step="variants", variants=len(variants))
    domain = Domain(attributes={"cost": (0.0, 100.0)})
    curator = Curator(variants, log=log, domain=domain, randomness=noise.seeded(1))
    few = Variants.from_arrays(variants.labels, variants.codes, variants.offsets, np.minimum(variants.counts, 5))
    cases = released_cases(few, np.random.default_rng(1))
    names = ("org:resource", "cost", "urgency")
    chosen, rest = choose(curator, names, Fraction(1), Fraction(1, 10**8), lambda text: None)
    times = released_times(curator, Fraction(1), cases, window=curator.events.window, remark=lambda text: None)
    columns = released_attributes(curator, rest, cases, chosen)
    sums = [int(times.sum() % 10**9), *sorted([*columns.events, *columns.cases])]
    told(step="questions", asked=len(curator.charges), same_in_memory_and_on_disk=sums)
    one = bounded(log, Unit("person", 1, "person"), noise.seeded(1))
    told(step="persons", cases=one.variants.cases)


def amun(path: Path, how: str, memory_limit: str, mode: str, target: Path) -> None:
    log = store(path, memory_limit=memory_limit) if how == "disk" else veilog.read(path)
    if log is None:
        raise SystemExit("this log cannot be kept on disk")
    told(step="read", how=how)
    variants = log.variants
    told(step="variants", variants=len(variants))
    made = veilog.release(log, "amun", as_published=True, seed=1, mode=mode)
    told(step="release", cases=made.variants.cases, events=made.variants.events, remarks=made.remarks)
    made.save(target)
    told(step="save", digest=hashlib.sha256(target.read_bytes()).hexdigest()[:16])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["release", "compare", "risk", "make", "events", "amun"])
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--target", type=Path, default=Path("out.parquet"))
    parser.add_argument("--method", default="evolve")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--how", choices=["disk", "memory"], default="disk")
    parser.add_argument("--mode", choices=["sampling", "filtering", "oversampling"], default="sampling")
    parser.add_argument("--memory-limit", default="1GB")
    given = parser.parse_args()
    if given.what == "release":
        release(given.size, given.target, given.method)
    elif given.what == "compare":
        compare(given.size)
    elif given.what == "risk":
        risks(given.size)
    elif given.what == "make":
        make(given.size, given.target)
    elif given.what == "amun":
        amun(given.log, given.how, given.memory_limit, given.mode, given.target)
    else:
        events(given.log, given.how, given.memory_limit)


if __name__ == "__main__":
    main()
