"""Tools for tests of the ledger: small logs, a guarantee, and the sum spent."""

from fractions import Fraction
from pathlib import Path

import veilog
from veilog.ledger.ledger import Ledger
from veilog.messages import Message
from veilog.privacy.account.guarantee import Charge, Guarantee, round_up
from veilog.privacy.mechanisms.mechanism import Sensitivity, Stated

# Enough cases that no release of them is ever empty: veilog does not write an empty release.
SMALL = veilog.Variants.from_dict({("a", "b"): 30_000, ("a", "c", "b"): 12_000})
OTHER = veilog.Variants.from_dict({("a", "b"): 30_001, ("a", "c", "b"): 12_000})


def guarantee(epsilon: Fraction, delta: Fraction = Fraction(0), status: str = "proven") -> Guarantee:
    proven = status == "proven"
    return Guarantee(
        status="proven" if proven else "none",
        epsilon=round_up(epsilon) if proven else None,
        delta=round_up(delta) if proven else None,
        nominal_epsilon=None,
        nominal_delta=None,
        unit="case",
        neighbours=Message("logs that differ by a case"),
        numerics=Message("exact"),
        conditions=(),
        reasons=() if proven else (Message("looked at"),),
        charges=(
            Charge("count", Message("cases"), Stated(Message("discrete Laplace")), Sensitivity.of(1), epsilon, delta),
        ),
    )


def spent(path: Path) -> Fraction | None:
    (account,) = Ledger.open(path).show()
    return None if account.spent is None else account.spent[0]
