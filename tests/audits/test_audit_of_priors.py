"""White-box audits of releases with a prior that has one neighbour's own variant.

No other case of the log has that variant. Audits run at a confidence of 1 - 1e-8, so they raise a false alarm that
often at most; the seeds are fixed besides.
"""

from collections import Counter
from pathlib import Path

import pytest

import veilog
from veilog.audits.attacks import Attempt
from veilog.audits.blackbox import audit
from veilog.logs.variants import Variants
from veilog.releasing.request import plan
from veilog.testing.methods import recorded_and_replayed, same

RARE = tuple("edcba")
USUAL = Counter({tuple("abcde"): 60, tuple("abde"): 25, tuple("acde"): 15})
WITHOUT, WITH = Variants.from_dict(USUAL), Variants.from_dict({**USUAL, RARE: 1})
DOMAIN = veilog.Domain(tuple("abcde"), 12)
ASKED = [("evolve", "4"), ("evolve", "0.2"), ("laplace", "1"), ("sacofa", "1")]
"""Settings in which votes or counts decide about the prior; evolve also at a high epsilon."""


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    """Write a prior in which every third case has the rare variant.

    For evolve it is one of the prototypes, for a tree it gives prefixes without a threshold.
    """
    path = tmp_path / "prior.txt"
    lines = [f"{count}, {', '.join(trace)}" for trace, count in [*USUAL.items(), (RARE, 50)]]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.nightly
@pytest.mark.parametrize(("method", "epsilon"), ASKED)
def test_a_rare_variant_of_a_prior_keeps_its_epsilon(method: str, epsilon: str, prior: Path) -> None:
    pair = Attempt("the one case of a variant that the prior has", WITHOUT, WITH, ())
    request = plan(method, epsilon=epsilon, domain=DOMAIN, prior=prior, allow_no_protection=True)
    found = audit(request, white_box=True, runs=200, pairs=[pair], seed=1, processes=1, confidence=1 - 1e-8)
    assert found.white_box is not None and not found.white_box.faults
    assert max(found.audited_epsilon, found.white_box.free_epsilon) <= float(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "epsilon"), ASKED)
def test_with_equal_answers_the_rare_variant_changes_nothing(method: str, epsilon: str, prior: Path) -> None:
    request = plan(method, epsilon=epsilon, domain=DOMAIN, prior=prior, allow_no_protection=True)
    for before, after in ((WITHOUT, WITH), (WITH, WITHOUT)):
        first, second, tape = recorded_and_replayed(request, before, after)
        assert tape.position == len(tape.entries) > 0
        assert same(first, second)
