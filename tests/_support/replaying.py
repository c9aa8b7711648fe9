"""A release recorded once and replayed on many other logs, with its charges.

:func:`veilog.testing.methods.recorded_and_replayed` records anew for every other log.
"""

import functools

from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.releasing.answers import OPENING, watch
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.run import run_plan
from veilog.testing.methods import Log, Tape

__all__ = ["check_charges", "record", "replay"]


def record(planned: ReleaseRequest, log: Log) -> tuple[Release, Tape]:
    """Return the release of ``log`` with its queries and answers."""
    tape = Tape(log, log, planned.public)
    return run_plan(planned.seeded(1), log, watched=functools.partial(_watched_by, tape)), tape


def replay(planned: ReleaseRequest, tape: Tape, other: Log) -> Release:
    """Return the release of ``other`` with the answers on the tape."""
    tape.position, tape.other, tape.domain = 0, other, planned.public
    return run_plan(planned.seeded(1), other, watched=functools.partial(_watched_by, tape))


def check_charges(released: Release, tape: Tape) -> list[str]:
    """Assert that charges and recorded queries match, and return what was opened."""
    paid = [charge for _, _, charges in tape.entries for charge in charges]
    opened = [asked[0] for asked, _, _ in tape.entries if asked[0] in OPENING]
    assert len(released.guarantee.charges) == len(paid) + opened.count("training") + opened.count("rounds")
    return opened


def _watched_by(tape: Tape, curator: Curator) -> Curator:
    # The draw of the cases of a person that count came before; it takes more bits where there are more people.
    curator._randomness = noise.seeded(1)
    return watch(curator, tape)
