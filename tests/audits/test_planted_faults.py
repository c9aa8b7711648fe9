"""White-box audits catch faults that are planted in the kernel.

The bound exceeds the derived epsilon, or the audit names the fault. Each test is one fault;
``python tests/audits/test_planted_faults.py NAME`` plants it and shows the audit, and without a name all of them, one
after the other. A right kernel passes each of these audits (:mod:`test_white_box`), but for one time in a hundred.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from veilog.audits.attacks import worst_cases
from veilog.audits.blackbox import audit
from veilog.audits.bounds import AuditResult
from veilog.privacy import curator
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.contributions import exact_sums
from veilog.privacy.histograms import cases_in_bins
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace, Thresholded

PAIRS = {pair.attack: pair for pair in worst_cases(False)}
EMPTY, HUNDRED, _, THOUSANDS, *_, EDGE = PAIRS.values()
RUNS = 150


def one_more(variants: Any, features: Any, size: int, bound: int, resolution: int, norm: Any) -> Any:
    """Let a case add one more to the sums than the noise covers."""
    return exact_sums(variants, features, size, bound + 1, resolution, norm)


def unclipped(variants: Any, features: Any, size: int, bound: int, resolution: int, norm: Any) -> Any:
    """Clip nothing."""
    return exact_sums(variants, features, size, 10**6, resolution, norm)


def halved(self: Laplace, n: int, source: noise.Randomness) -> Any:
    """Draw noise of half the scale."""
    return noise.discrete_laplace(2 * self.decay, n, source)


def reused(self: Laplace, n: int, source: noise.Randomness) -> Any:
    """Draw the same random bits again for every query."""
    return noise.discrete_laplace(self.decay, n, noise.seeded(7))


def uncharged(self: ChargeAccount, question: str, purpose: str, mechanism: Any, *rest: Any) -> Any:
    """Answer sums without a charge."""
    return mechanism if question == "sums" else charge(self, question, purpose, mechanism, *rest)


def in_floats(variants: Any, assign: Any, size: int) -> Any:
    """Count the cases of bins in single precision."""
    bins, weights = cases_in_bins(variants, assign, size)
    return bins, weights.astype(np.float32).astype(np.int64)


def all_come_out(added: Any, above: int) -> Thresholded:
    """Release every noisy count above 0, with the delta of a threshold of k."""
    return Thresholded(added, 0)


charge = ChargeAccount.charge
FAULTS: dict[str, tuple[tuple[Any, str, Callable[..., Any]], str, dict[str, Any], Any]] = {
    "sensitivity off by one": ((curator, "exact_sums", one_more), "df-laplace", {"bound": 1}, EMPTY),
    "half the noise": ((Laplace, "draw", halved), "laplace", {}, THOUSANDS),
    "a question not charged": ((ChargeAccount, "charge", uncharged), "df-laplace", {}, EMPTY),
    "float sums": ((curator, "cases_in_bins", in_floats), "laplace", {}, EDGE),
    "clip missing": ((curator, "exact_sums", unclipped), "df-laplace", {}, EMPTY),
    "seed reused": ((Laplace, "draw", reused), "df-laplace", {}, EMPTY),
    "threshold not charged": ((curator, "Thresholded", all_come_out), "travas", {"delta": "1e-3"}, EMPTY),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    with mock.patch.object(*FAULTS[name][0]):
        yield


def audited(name: str, runs: int = RUNS) -> AuditResult:
    _, method, settings, pair = FAULTS[name]
    with planted(name):
        return audit(method, epsilon=1, white_box=True, runs=runs, pairs=[pair], seed=1, processes=1, **settings)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    found = audited(name, RUNS if name not in ("half the noise", "float sums", "sensitivity off by one") else 700)
    white = found.white_box
    assert white is not None
    named = {
        "a question not charged": "audit-fault-uncharged",
        "seed reused": "audit-fault-noise-of-runs",
    }
    if name in named:
        assert named[name] in [fault.code for fault in white.faults]
        assert found.verdicts[0].code == "audit-fault"
    else:
        assert max(found.audited_epsilon, white.free_epsilon) > 1
        assert found.verdicts[0].code == "audit-contradicts-derived"


if __name__ == "__main__":
    for fault in sys.argv[1:] or FAULTS:
        result = audited(fault, 1000)
        assert result.white_box is not None
        print(f"{fault}: {result.verdict} (without the shape of the noise: {result.white_box.free_epsilon:.3g})")
