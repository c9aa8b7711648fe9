"""Dry runs in processes beside the server: one that takes too long, or too much memory, is ended.

What a form asks for may be large beyond any measure (a tree of a million levels), and the server answers everybody.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import time
from multiprocessing.connection import Connection
from threading import Event, Lock

from veilog._process import Child, limit_memory
from veilog.errors import VeilogError
from veilog.privacy.account.guarantee import Guarantee

__all__ = ["GivenUp", "give_up_all", "tried_beside", "under_way"]

_LONGEST = 20.0
"""Seconds of processor time; on an idle machine all but those with gradients take less than two."""
_LONGEST_WAIT = 120.0
"""Seconds in all, also where the system does not tell those of a process."""
_MEMORY = 2 << 30
_LOOK = 0.05
_idle: list[Child] = []
_changing = Lock()
_given_up: list[Event] = [Event()]
"""Set when the server stops, for all that are under way or wait by then."""


class GivenUp(Exception):
    """A dry run that took too long, or too much memory."""


def under_way() -> Event:
    """Return what tells a dry run that begins now that it is given up."""
    return _given_up[0]


def give_up_all() -> None:
    """Give up those that are under way and those that wait, so that nobody waits for them to end."""
    _given_up[0].set()
    _given_up[0] = Event()


def tried_beside(asked: str, given_up: Event) -> Guarantee | str:
    """Return what a plan, as JSON with the public sizes of its log, would guarantee, or why it is refused;
    :class:`GivenUp` where that is too much."""
    if given_up.is_set():
        raise GivenUp
    with _changing:
        child = _idle.pop() if _idle else None
    child = child if child is not None and child.alive else Child(_answering)
    try:
        child.pipe.send_bytes(asked.encode())
        found = _awaited(child, given_up)
    except (EOFError, OSError) as error:
        if child.end() == 1:  # of an error that nobody foresaw, which it told the terminal
            raise
        raise GivenUp from error
    with _changing:
        _idle.append(child)
    return found


def _awaited(child: Child, given_up: Event) -> Guarantee | str:
    since, before = time.monotonic(), child.seconds()
    while not child.pipe.poll(_LOOK):
        late = child.seconds() - before > _LONGEST or time.monotonic() - since > _LONGEST_WAIT
        if late or given_up.is_set() or child.memory() > _MEMORY:
            child.end(0)
            raise GivenUp
    found = child.pipe.recv()  # of this program's own making: it read nothing that anybody brought
    assert isinstance(found, Guarantee | str)
    return found


def _answering(pipe: Connection) -> None:
    """What the process does, until nobody asks any more."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpgid(0, 0)  # it is weighed, and ended, by its group
    limit_memory(_MEMORY, reserved=False)
    from veilog.releasing.request import ReleaseRequest
    from veilog.releasing.trying.trial import tried

    with contextlib.suppress(EOFError, OSError, MemoryError):
        while True:
            asked = json.loads(pipe.recv_bytes())
            plan = ReleaseRequest.from_json(asked["plan"])
            try:
                pipe.send(tried(plan, **asked["sizes"]))
            except VeilogError as error:
                pipe.send(error.in_command())


@atexit.register
def _end() -> None:
    """Before multiprocessing waits for them."""
    with _changing:
        while _idle:
            _idle.pop().end(0)
