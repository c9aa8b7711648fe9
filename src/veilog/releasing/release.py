"""``veilog.release``: the one-line front of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from veilog.logs.files import AnyLog
from veilog.logs.stored.store import StoredLog
from veilog.methods.method import Progress
from veilog.privacy.account.accounting import Number
from veilog.privacy.domain import Domain, Window
from veilog.privacy.part import Part
from veilog.releasing.keywords import Keywords
from veilog.releasing.owner.account import LedgerChoice
from veilog.releasing.plan import Plan, as_planned
from veilog.releasing.result import Release


def release(
    log: AnyLog | StoredLog,
    method: str | Plan,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    as_published: bool = False,
    seed: int | None = None,
    domain: Domain | None = None,
    activities: Iterable[str] | str | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    unnamed: str | None = None,
    times: Number | None = None,
    window: Window | str | None = None,
    processing: bool = False,
    attributes: Iterable[str] | None = None,
    attributes_share: Number | None = None,
    ledger: LedgerChoice = None,
    guessing_advantage: Number | None = None,
    allow_no_protection: bool = False,
    part: Part | str | None = None,
    remember_units: bool = False,
    progress: Progress | None = None,
    **parameters: Unpack[Keywords],
) -> Release:
    """Release a log with a method, or as a :class:`Plan` says, which takes nothing beside it but ``ledger`` and
    ``progress``.

    The log may be an :class:`EventLog`, its variants, a DataFrame, a file, a :class:`Release`, or a
    :class:`StoredLog`, whose events are never all in memory.

    >>> import veilog
    >>> from veilog.logs.made_up.simulate import hospital
    >>> released = veilog.release(hospital(200, seed=1), "evolve", epsilon=1, activities="log")
    >>> released.guarantee.epsilon
    1.0

    ``epsilon`` and ``delta`` are the budget: certified (the default) they are what the guarantee derives; with
    ``as_published`` they are what the paper calls them, and the guarantee says what is derived instead. ``seed`` makes
    a run repeatable for experiments, and its guarantee "none". Further keywords are parameters of the method. An
    epsilon above 3.89 protects nobody in practice and needs ``allow_no_protection``.

    ``domain`` declares public facts, and ``activities`` the labels alone: their names; ``"log"``, your word that those
    of the log are public, which is a condition of the guarantee; or ``"privately"``, to have those found that enough
    cases have, with a tenth of epsilon and a part of delta. A method that needs them refuses without.

    ``unit`` is who is protected: a case; a person, named by an attribute of the log (its name), of whose cases at most
    ``max_cases``, chosen at random, are looked at; or ``person`` where nobody has more than ``max_cases`` cases. Cases
    of which the attribute names no single person are left out; with ``unnamed="own"`` those that name none are each
    as of a person without other cases, which the guarantee then takes for granted.

    ``times`` is the share of epsilon that gives the released events times, starting in a ``window`` (a pair of times or
    dates, or ``"2024-01-01..2025-01-01"``; ``"log"`` takes it from the log, which the guarantee says; None a made-up
    year). With ``processing`` when events began (``start_timestamp``) is released, too. ``attributes`` are released
    with ``attributes_share`` (a quarter) of epsilon. Both need a certified release of variants of an event log.

    ``part`` releases some of the cases alone, by a public rule that looks at each case by itself: ``"month=2024-03"``
    (also ``week=2024-W11``, ``quarter=2024-Q1``, ``year=2024``) those that start then, ``"ward=A"`` those with this
    value of an attribute, ``none`` those without. In a ledger, releases of different parts of one rule cost a case
    their maximum and not their sum, if every case keeps its part. ``remember_units`` has the ledger keep a keyed digest
    (16 bytes) of the name of every case, or person, that a release of a part looked at, and leaves out those that
    another part of the rule had: then it is enough that they keep their names.

    ``guessing_advantage`` takes the place of ``epsilon``: by how much at most the release may raise an attacker's
    chance to guess that a case (or person) is in the log, delta included. A method that has a parameter of this name
    gets it as that.

    The release is entered in a ``ledger``, in the account of its data: what it may cost is set aside before any
    question is asked, and refused if that would exceed their budget. By default that is your ledger, which the command
    and the pages use, too; or the file of another, made if there is none. With False the release is entered nowhere,
    and your ledger lists it as not counted. What has a ``seed`` is entered only where a ledger is named.
    """
    planned = as_planned(
        method,
        epsilon=epsilon,
        delta=delta,
        as_published=as_published,
        seed=seed,
        domain=domain,
        activities=activities,
        unit=unit,
        max_cases=max_cases,
        unnamed=unnamed,
        times=times,
        window=window,
        processing=processing,
        attributes=attributes,
        attributes_share=attributes_share,
        guessing_advantage=guessing_advantage,
        allow_no_protection=allow_no_protection,
        part=part,
        remember_units=remember_units,
        **parameters,
    )
    return planned.run(log, ledger=ledger, progress=progress)
