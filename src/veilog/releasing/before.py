"""Steps of a release before anything is set aside for it: what fails here costs nothing."""

from __future__ import annotations

import importlib

import numpy as np

from veilog._language import counted
from veilog.errors import ParameterError
from veilog.ledger.fingerprints import Units
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.part import names_of_units
from veilog.releasing.planned import Planned

_LIBRARIES = {"travag": ("dp_accounting.pld",), "pripel": ("ot", "scipy.sparse"), "libra": ("ot", "scipy.sparse")}
"""Libraries in other languages that methods load at their first use."""
_WITH_DELTA = ("scipy.special",)
_SIZE = 64


def load_libraries(planned: Planned) -> None:
    """Load the libraries in other languages that a method computes with. One that finds no memory may end the process
    with no word of ours, and a release that was paid for with it."""
    square = np.ones((_SIZE, _SIZE))
    np.linalg.norm(square @ square)  # linear algebra takes its memory at the first product
    for name in (*_LIBRARIES.get(planned.method.name, ()), *(_WITH_DELTA if planned.delta else ())):
        importlib.import_module(name)


def unseen_units(
    planned: Planned,
    looked_at: EventLog | StoredLog | Variants,
    log: EventLog | StoredLog | Variants,
    ledger: Ledger | None,
) -> Units | None:
    """Return which cases of the part are of units that no other part had, where the ledger remembers them."""
    if not planned.remember_units or planned.part is None:
        return None
    if ledger is None:
        raise ParameterError(
            "Units are remembered in a ledger, and this release is entered in none.",
            parameter="remember_units",
            advice="Name a ledger (--ledger PATH), or leave out --remember-units.",
        )
    assert not isinstance(looked_at, Variants), "a part of variants is refused"
    names = names_of_units(looked_at, planned.unit.column)
    return ledger.units(log, planned.part, planned.unit.column or planned.unit.name, names)


def notes_of_units(units: Units | None) -> tuple[str, ...]:
    """Return what the data owner alone may know: how many cases were left out."""
    left = 0 if units is None else int(np.count_nonzero(~units.new))
    if not left:
        return ()
    were = "was" if left == 1 else "were"
    return (f"{counted(left, 'case', 'cases')} of this part {were} in another part of its rule before, and left out.",)
