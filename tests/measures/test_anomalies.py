"""Anomalies on logs where the answer is plain."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from veilog.errors import MissingExtraError, ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.anomalies import normal_share


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


@pytest.mark.slow
def test_noise_looks_less_normal_than_the_log_itself() -> None:
    pytest.importorskip("sklearn")
    original = hospital(400, seed=1).variants
    rng = np.random.default_rng(0)
    noise = Variants.from_sequences([[original.labels[c] for c in rng.integers(0, 16, size=25)] for _ in range(50)])
    usual, strange = normal_share(original, original), normal_share(original, noise)
    assert usual.released == usual.original > 0.8
    assert strange.original == usual.original and strange.released < 0.2


@pytest.mark.slow
def test_the_share_weighs_cases_and_does_not_depend_on_the_order_of_rows() -> None:
    pytest.importorskip("sklearn")
    rows = list(hospital(200, seed=1).variants.to_dict().items())
    backwards = Variants.from_dict(dict(reversed(rows)))
    first = normal_share(Variants.from_dict(dict(rows)), backwards)
    assert first == normal_share(backwards, backwards)
    both = log(("abc", 99), ("cba", 1))
    share = normal_share(log(("abc", 500), ("abd", 480), ("dcba", 2)), both)
    assert share.released in (0.0, 0.01, 0.99, 1.0)


def test_cases_without_events_cannot_be_told_apart() -> None:
    pytest.importorskip("sklearn")
    with refused(ParameterError, "anomalies-without-events"):
        normal_share(log(("", 3)), log(("ab", 1)))


@pytest.mark.slow
def test_unknown_activities_and_empty_traces_are_described() -> None:
    pytest.importorskip("sklearn")
    original = log(("abc", 30), ("", 2), ("a", 5))
    assert 0.0 <= normal_share(original, log(("xyz", 3), ("", 1), ("axb", 1))).released <= 1.0
    assert normal_share(original, original).features == 5


def test_empty_logs_and_the_missing_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    with refused(ParameterError, "anomalies-log-without-cases"):
        normal_share(log(("a", 1)), Variants.from_dict({}))
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with refused(MissingExtraError, "extra-missing"):
        normal_share(log(("a", 1)), log(("a", 1)))
