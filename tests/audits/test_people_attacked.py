"""Attacks on people gain no more from certified releases than guaranteed.

The people of a small hospital are halved at random; one half is released, the other half is the control. Those in the
log and those held out are exchangeable. So the mean gain of any attack over the control is at most the guessing
advantage that follows from the guarantee. The lower end of a gain's interval (at 99.5 %) is above the mean in 1 of 400
attacks.
"""

from typing import Any

import pytest

import veilog
from veilog.errors import VeilogError
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.singling_out import halves, inference, linkability, singling_out
from veilog.measures.singling_out.inference import Inference
from veilog.measures.singling_out.linkage import Linkability
from veilog.measures.singling_out.measure import SinglingOut
from veilog.methods import METHODS
from veilog.privacy.domain import Domain
from veilog.releasing.checks import meaning_of

LOG = hospital(160, seed=1)
FIRST, SECOND = halves(LOG)
CERTIFIED = sorted(
    name for name, method in METHODS.items() if method.certified and str(method.budget) != "none" and name != "travag"
)
"""Certified methods but the one that trains a network for half a minute, whose noise has audits of its own."""


def gains(found: SinglingOut | Linkability | Inference) -> list[tuple[float, bool]]:
    return [(row.beyond.low, row.more) for row in found.results]


def attacked(released: veilog.Release) -> list[tuple[float, bool]]:
    rows: list[tuple[float, bool]] = []
    for attack in (singling_out, linkability, inference):
        try:
            rows += gains(attack(FIRST.variants, released.variants, control=SECOND.variants))  # type: ignore[union-attr]
        except VeilogError:
            continue
    return rows


def test_all_certified_methods_are_here() -> None:
    assert {"evolve", "travas", "laplace", "pripel", "sacofa", "sapa", "df-laplace", "dpim", "libra", "utravas"} == set(
        CERTIFIED
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", CERTIFIED)
def test_no_attack_gains_more_than_is_proven(method: str) -> None:
    domain = Domain().taken_from_log(["activities", "max_length"])
    budget: dict[str, Any] = {"epsilon": "0.5", "delta": "1e-3" if METHODS[method].needs_delta else 0}
    meaning = meaning_of((released := veilog.release(FIRST, method, domain=domain, **budget)).guarantee)
    assert meaning is not None and meaning.membership_test_gap < 0.26
    rows = attacked(released)
    assert len(rows) >= 10
    assert all(low <= meaning.membership_test_gap for low, _ in rows)
    assert sum(more for _, more in rows) <= len(rows) // 3


def test_the_log_itself_gains_more_than_any_such_bound() -> None:
    """Without noise the attacks gain more than any bound, so they are no toys."""
    own = veilog.release(FIRST, "laplace", epsilon=1, activities="log", depth=3)
    meaning = meaning_of(own.guarantee)
    assert meaning is not None
    found = linkability(FIRST, FIRST, control=SECOND, sizes=[10])
    assert any(row.more and row.beyond.value > 0.2 for row in found.results)
