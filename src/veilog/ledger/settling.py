"""What a release cost, charged when it ends, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from veilog.errors import QuestionError, VeilogError
from veilog.ledger.runs import Reservation
from veilog.privacy.account.guarantee import Guarantee


@contextlib.contextmanager
def settling(
    reservation: Reservation | None,
    claimed: Callable[[], Guarantee],
    contacted: Callable[[], bool],
    so_far: Callable[[], Guarantee] | None = None,
) -> Iterator[None]:
    """Settle a release when the block ends, at what it claims. When it fails, charge what was asked until then
    (``so_far``; by default as claimed), or, if nothing was asked of the data yet (``contacted``), withdraw it. Where it
    failed in the data, charge all that was reserved. Where even that fails, it stays reserved, which counts as spent.
    Whoever has no ledger passes None, and nothing happens.
    """
    if reservation is None:
        yield
        return
    try:
        yield
    except BaseException as error:  # also Ctrl-C: what was asked was asked
        with contextlib.suppress(VeilogError):
            if contacted():
                reservation.settle((so_far or claimed)(), failed=True, whole=isinstance(error, QuestionError))
            else:
                reservation.withdraw()
        raise
    reservation.settle(claimed())
