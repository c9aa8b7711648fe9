"""Libra is empty where clipping leaves nothing; certified, its charges add up."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openly
import pyarrow as pa
import pytest
from refusals import refused
from scipy.integrate import quad

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Sequences
from veilog.methods.libra import accounted, informative, least_scale, renyi_of_laplace, renyi_of_sample
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.mechanism import Subsampled

T0 = 1_700_000_000
MINUTE = 60_000_000


def log_of(*cases: list[tuple[str, int | None]]) -> EventLog:
    """Return cases of (activity, seconds after T0 or None)."""
    flat = [event for case in cases for event in case]
    times = [None if t is None else (T0 + t) * 1_000_000 for _, t in flat]
    return EventLog(
        pa.table(
            {
                "case:index": np.repeat(np.arange(len(cases)), [len(case) for case in cases]),
                "event:index": np.arange(len(flat)),
                "concept:name": pa.array([a for a, _ in flat], pa.string()).dictionary_encode(),
                "time:timestamp": pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
            }
        ),
        pa.table({"concept:name": pa.array([f"case {i}" for i in range(len(cases))])}),
    )


HOSPITAL = log_of(
    *[[("a", i * 900), ("b", i * 900 + 60 + i), ("c", i * 900 + 4_000)] for i in range(300)],
    *[[("a", i * 700), ("c", i * 700 + 90)] for i in range(200)],
    *[[("c", i), ("a", i + 5)] for i in range(9)],
)
PUBLISHED: dict[str, Any] = {"as_published": True, "delta": "0.01"}


# The accountant ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 5, 20])
@pytest.mark.parametrize("scale", [0.5, 2.5])
def test_the_renyi_divergence_of_laplace_noise_is_its_integral(order: int, scale: float) -> None:
    def integrand(x: float) -> float:
        return math.exp((-order * abs(x) + (order - 1) * abs(x - 1)) / scale) / (2 * scale)

    bounds = ((-60 * scale, 0), (0, 1), (1, 60 * scale))
    integral = sum(quad(integrand, low, high)[0] for low, high in bounds)
    assert renyi_of_laplace(order, scale) == pytest.approx(math.log(integral) / (order - 1), rel=1e-6)


def test_sampling_everything_is_no_sampling_and_less_costs_less() -> None:
    assert renyi_of_sample(4, 2.0, 1.0) == renyi_of_laplace(4, 2.0)
    costs = [renyi_of_sample(4, 2.0, rate) for rate in (0.01, 0.05, 0.2)]
    assert costs == sorted(costs) and costs[0] > 0
    # Order 2 has no term with the factor 3: it is the exact second moment of the mixture.
    q, e2 = 0.2, math.exp(renyi_of_laplace(2, 2.0))
    assert renyi_of_sample(2, 2.0, q) == pytest.approx(math.log(1 - q**2 + q**2 * e2))


def test_the_least_scale_is_where_the_accountant_meets_epsilon() -> None:
    found = least_scale(1.0, 1e-3, 0.05, 20, None)
    assert found is not None
    scale, order = found
    assert 0.995 < accounted(scale, 0.05, 20, order, 1e-3) <= 1.0
    assert least_scale(0.01, 1e-3, 0.05, 20, None) is None


# Lots ----------------------------------------------------------------------------------------------------------------


def lot(*cases: tuple[list[int], list[float]]) -> tuple[Sequences, np.ndarray]:
    """Return a lot of cases of codes and minutes."""
    offsets = np.cumsum([0, *(len(codes) for codes, _ in cases)])
    codes = np.array([code for case, _ in cases for code in case], dtype=np.int32)
    minutes = np.array([m for _, clock in cases for m in clock])
    return Sequences(("a", "b", "c"), codes, offsets), (minutes * MINUTE).astype(np.int64)


def test_a_lot_keeps_cases_with_news_only() -> None:
    same = ([0, 1], [0, 5])
    cases, times = lot(*[same] * 60, ([0, 2], [0, 5]))
    rng = np.random.default_rng(1)
    kept = informative(cases, times, 20, rng)
    assert 1 <= len(kept) <= 2  # the lot may end before the last case is looked at
    moved, moved_times = lot(*[same] * 30, *[([0, 1], [0, 5_000])] * 30)
    assert len(informative(moved, moved_times, 20, rng)) > 2


def test_a_lot_that_is_used_up_is_kept_whole() -> None:
    cases, times = lot(*[([0, 1], [0, 5])] * 10)
    assert informative(cases, times, 20, np.random.default_rng(1)).tolist() == list(range(10))


# As published --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("delta", ["0.001", "0.0001"])
def test_sepsis_is_clipped_to_nothing_from_a_thousandth_on_and_certified_it_is_not(logs: Path, delta: str) -> None:
    """Sepsis is clipped to nothing at a delta of .001 or less, but not if certified."""
    log = veilog.read(logs / "sepsis.xes.gz")
    published = openly.release(log, "libra", epsilon=1, as_published=True, delta=delta)
    assert published.variants.cases == 0 and "empty" in " ".join(map(str, published.remarks))
    more = openly.release(log, "libra", epsilon=1, as_published=True, delta="0.01", seed=1)
    assert more.variants.cases > 0 and set(more.variants.sequences) <= set(log.variants.sequences)
    certified = openly.release(log, "libra", epsilon=1, delta=delta, query="travas")
    assert certified.guarantee.proven and certified.variants.cases > 0


@pytest.mark.slow
def test_as_published_derives_nothing_and_says_why() -> None:
    released = openly.release(HOSPITAL, "libra", epsilon=1, seed=2, **PUBLISHED)
    assert released.guarantee.status == "none"
    reasons = {"libra-clipped-by-exact-counts", "libra-samples-with-replacement", "libra-amun-within-samples"}
    assert reasons <= {reason.code for reason in released.guarantee.reasons}
    assert "libra-accounted-epsilon" in [remark.code for remark in released.remarks]
    assert released.variants.cases > 0
    times = released.log.events.column("time:timestamp").cast(pa.int64()).to_numpy()
    same = np.diff(released.log.events.column("case:index").to_numpy()) == 0
    assert (np.diff(times)[same] >= 0).all()


@pytest.mark.slow
def test_more_noise_clips_more() -> None:
    kept = [openly.release(HOSPITAL, "libra", epsilon=5, seed=1, b=b, **PUBLISHED).variants for b in (0.5, 5, 30, 100)]
    assert [len(v) for v in kept] == sorted((len(v) for v in kept), reverse=True)
    assert len(kept[0]) == 3 and len(kept[-1]) == 0


# Certified -----------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "laplace": {"query": "laplace", "query_parameters": "depth=3"},
    "two samples": {"query": "sapa", "samples": 2, "gamma": 0.25},
    "travas": {"query": "travas", "delta": "0.004", "gamma": 0.8},
    "everything": {"query": "laplace", "gamma": 1, "times_share": 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_certified_costs_exactly_the_budget_and_never_peeks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Curator, reason: str) -> None:
        raise AssertionError(f"peeked: {reason}")

    monkeypatch.setattr(Curator, "peek", refused)
    monkeypatch.setattr(Curator, "peek_log", refused)
    settings = SETTINGS[name]
    released = openly.release(HOSPITAL, "libra", epsilon=2, **settings)
    assert (released.guarantee.status, released.guarantee.epsilon) == ("proven", 2.0)
    assert released.guarantee.delta == pytest.approx(float(settings.get("delta", 0)))
    all_of_it, charges = settings.get("gamma") == 1, released.guarantee.charges
    sampled = [c for c in charges if all_of_it or isinstance(c.mechanism, Subsampled)]
    flow = 2 * (1 - Fraction(str(settings.get("times_share", "0.3"))))
    assert sum(c.epsilon for c in sampled) == flow
    assert 0.4 * 509 < released.variants.cases < 1.8 * 509, "scaled to the size of the whole log"


@pytest.mark.slow
def test_a_person_with_several_cases_is_protected_too() -> None:
    released = openly.release(HOSPITAL, "libra", epsilon=3, query="laplace", unit="person", max_cases=2)
    assert released.guarantee.proven and released.guarantee.epsilon == pytest.approx(3)
    assert released.guarantee.epsilon is not None and released.guarantee.epsilon <= 3


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "code", "values"),
    [
        ({"gamma": 0}, "setting-too-small", {"name": "gamma"}),
        ({"gamma": 1.5}, "setting-too-large", {"name": "gamma", "maximum": 1}),
        ({"alpha": 1, **PUBLISHED}, "setting-too-small", {"name": "alpha", "minimum": 2}),
        ({"alpha": 2.5, **PUBLISHED}, "setting-not-as-needed", {"name": "alpha"}),
        ({"alpha": 2, **PUBLISHED}, "libra-alpha-out-of-reach", {"alpha": 2}),
        ({"b": 0.1, **PUBLISHED}, "libra-noise-too-small", {"scale": 0.1}),
        ({"b": -1, **PUBLISHED}, "setting-too-small", {"name": "b"}),
        ({"b": 2}, "libra-setting-of-published", {"name": "b"}),
        ({"alpha": 5}, "libra-setting-of-published", {"name": "alpha"}),
        ({"as_published": True}, "libra-delta-missing", {}),
        ({"query": "laplace", **PUBLISHED}, "libra-setting-of-certified", {"name": "query"}),
        ({"samples": 3, **PUBLISHED}, "libra-setting-of-certified", {"name": "samples"}),
        ({"query": "nonsense"}, "query-method-unknown", {"name": "nonsense"}),
        ({"query": "travas"}, "query-delta-missing", {"name": "travas"}),
        ({"query": "df-laplace", "delta": "0.1", "times_share": 0}, "query-delta-not-needed", {}),
        ({"start_window": "log", "times_share": 0}, "start-window-without-times", {}),
    ],
)
def test_bad_parameters_are_refused(settings: dict[str, Any], code: str, values: dict[str, Any]) -> None:
    with refused(ParameterError, code, **values):
        openly.release(HOSPITAL, "libra", epsilon=1, **settings)


def test_too_small_an_epsilon_for_the_accountant_is_refused() -> None:
    with refused(ParameterError, "libra-epsilon-out-of-reach", epsilon=0.01, delta=0.01):
        openly.release(HOSPITAL, "libra", epsilon="0.01", **PUBLISHED)


def test_missing_times_are_refused_as_published() -> None:
    with refused(InputError, "libra-timestamps-missing", null_count=1):
        openly.release(log_of([("a", 0), ("b", None)]), "libra", epsilon=1, **PUBLISHED)


def test_tiny_logs_come_out_empty() -> None:
    for log in (log_of([("a", 0)]), log_of([], [("a", 0)])):
        assert openly.release(log, "libra", epsilon=1, **PUBLISHED).variants.cases == 0
