"""From a log to a release: choose a method, ask the curator, derive the guarantee, write the result."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilog._version import __version__
from veilog.errors import OutputError, ParameterError, VeilogError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods import Method, method_named
from veilog.methods.event_log import (
    Details,
    Wanted,
    anonymous,
    assembled,
    attributes_before,
    attributes_of,
    released_cases,
    times_of,
)
from veilog.methods.method import Progress, Request
from veilog.privacy import noise
from veilog.privacy.accounting import Number, compose, parse_delta, parse_epsilon, round_up
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain, Window
from veilog.privacy.guarantee import Charge, Guarantee
from veilog.privacy.guessing import epsilon_of
from veilog.privacy.ledger import Ledger, Reservation, settling
from veilog.privacy.persons import ONE_CASE, Unit, bounded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Operation", "Release", "budget", "check_unit", "release"]

_EXTENSIONS = (
    ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
    ("Time", "time", "http://www.xes-standard.org/time.xesext"),
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OPTIONAL_EXTENSIONS = {
    "org:": ("Organizational", "org", "http://www.xes-standard.org/org.xesext"),
    "lifecycle:": ("Lifecycle", "lifecycle", "http://www.xes-standard.org/lifecycle.xesext"),
}


@dataclass(frozen=True)
class Operation:
    """One thing done to make a release, and what its questions cost; together they cost what the guarantee says."""

    target: str
    method: str
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Release:
    """What leaves the house, with its guarantee. Nothing in it was computed from raw data outside a question."""

    method: str
    as_published: bool
    parameters: Mapping[str, Any]
    variants: Variants
    guarantee: Guarantee
    seconds: float
    remarks: tuple[str, ...] = ()
    """What the reader should know, from public and released quantities only."""
    order: np.random.Generator = field(default_factory=np.random.default_rng, repr=False, compare=False)
    """Where the order of the released cases comes from."""
    operations: tuple[Operation, ...] = ()
    details: Details | None = None
    """The released cases with their times and attributes, where these were asked for."""
    full: EventLog | None = None
    """What a method released that makes whole logs, with fresh case names."""
    entry: Reservation | None = None
    """Where it is entered in the ledger of its data, if it is."""

    @cached_property
    def log(self) -> EventLog:
        """The release as an event log: fresh case names, cases in random order.

        A release without times gets artificial ones, an hour apart from 1970-01-01 on, because most tools sort by
        time. A log attribute says so.
        """
        if self.full is not None:
            return replace(self.full, metadata=_metadata(self))
        details = self.details or Details(released_cases(self.variants, self.order))
        return assembled(details, _metadata(self))

    def to_pandas(self) -> pd.DataFrame:
        """The released events as a DataFrame with pm4py's columns."""
        return self.log.to_pandas()

    def save(self, path: str | Path) -> None:
        """Write the release; the suffix says how (.xes, .xes.gz, .csv, .parquet). Nothing half written remains."""
        if self.variants.cases == 0:
            raise OutputError(
                "The release is empty, so there is nothing to write.",
                path=path,
                advice="Its budget is spent nevertheless; a larger epsilon or delta lets more through.",
            )
        # What a table cannot hold is said in the remarks; to refuse it here would lose a release that is paid for.
        files.write(self.log, path, lossy=self.variants.events > 0)
        if self.entry is None:
            return
        try:
            self.entry.written(path)
        except VeilogError as error:
            raise OutputError(
                f"The release is written, and was charged, but its ledger could not note the file. {error}", path=path
            ) from error

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "as_published": self.as_published,
            "parameters": dict(self.parameters),
            "guarantee": self.guarantee.to_json(),
            "cases": self.variants.cases,
            "events": self.variants.events,
            "variants": len(self.variants),
            "operations": [asdict(operation) for operation in self.operations],
            "remarks": list(self.remarks),
            "seconds": self.seconds,
        }


def release(
    log: EventLog | Variants,
    method: str,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    as_published: bool = False,
    seed: int | None = None,
    domain: Domain | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    times: Number | None = None,
    window: Window | str | None = None,
    attributes: Iterable[str] | None = None,
    attributes_share: Number | None = None,
    ledger: Ledger | str | Path | None = None,
    guessing_advantage: Number | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Release:
    """Release a log with a method.

    ``epsilon`` and ``delta`` are the budget: certified (the default) they are what the guarantee derives; with
    ``as_published`` they are what the paper calls them, and the guarantee says what is derived instead. ``seed`` makes
    a run repeatable for experiments, and its guarantee "none". ``domain`` declares public facts. Further keywords are
    parameters of the method.

    ``unit`` is who is protected: a case; a person, named by an attribute of the log (its name), of whose cases at most
    ``max_cases``, chosen at random, are looked at; or ``person`` where nobody has more than ``max_cases`` cases.

    ``times`` is the share of epsilon that gives the released events times, starting in a ``window`` (a pair of times;
    ``"log"`` takes it from the log, which the guarantee says; None a made-up year). ``attributes`` are released with
    ``attributes_share`` (a quarter) of epsilon. Both need a certified release of variants of an event log.

    ``guessing_advantage`` takes the place of ``epsilon``: by how much at most the release may raise an attacker's
    chance to guess that a case (or person) is in the log, delta included. A method that has a parameter of this name
    gets it as that.

    With a ``ledger`` (the file of one; made if there is none) the release is entered in the account of its data: what
    it may cost is set aside before any question is asked, and refused if that would exceed their budget.
    """
    chosen = method_named(method)
    if guessing_advantage is not None:
        epsilon, parameters = by_advantage(chosen, guessing_advantage, epsilon, delta, parameters)
    if not (as_published or chosen.certified):
        raise ParameterError(
            f"Method {method!r} has no certified release.",
            parameter="as_published",
            advice="Add --as-published to take it as its paper has it, or take a certified method such as evolve.",
        )
    wanted = Wanted.of(times, attributes, attributes_share, window)
    declared = domain or Domain()
    if wanted:
        _check_wanted(chosen, log, as_published)
    if isinstance(wanted.window, tuple):
        declared = replace(declared, window=wanted.window)
        wanted = replace(wanted, window=declared.window)
    open_values = any(name not in declared.attributes for name in wanted.attributes)
    values = chosen.parse(parameters)
    spends_delta = chosen.spends_delta(values)
    protected = Unit.of(unit, max_cases)
    if protected is not ONE_CASE:
        check_unit(chosen, log, protected, as_published)
    asked, asked_delta = budget(chosen, epsilon, delta, spends_delta or open_values)
    eps, failure = protected.of_one_case(asked, asked_delta)
    flow_delta = Fraction(0) if not spends_delta else failure / 2 if open_values else failure
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError(f"seed must be a whole number from 0 on, not {seed!r}.", parameter="seed")

    source = noise.operating_system() if seed is None else noise.seeded(seed)
    whole = log
    if not isinstance(log, Variants):
        log = bounded(log, protected, source)
    variants = log if isinstance(log, Variants) else log.variants
    if variants.cases == 0:
        raise ParameterError("The log has no cases, so there is nothing to release.", parameter="log")
    if chosen.full_log and isinstance(log, Variants):
        raise ParameterError(
            f"Method {method!r} needs an event log; variants have neither times nor attributes.",
            parameter="log",
            advice="Give the log itself, as veilog.read() returns it.",
        )
    raw = log if (wanted or chosen.full_log) and isinstance(log, EventLog) else None
    curator = Curator(variants, log=raw, domain=declared, unit=protected, randomness=source)
    said: list[str] = []
    started = time.perf_counter()
    derive = partial(
        curator.guarantee, nominal_epsilon=asked if asked else None, nominal_delta=asked_delta if flow_delta else None
    )
    entry = None
    if ledger is not None:
        unbounded = as_published or seed is not None or chosen.budget == "none"
        entry = (ledger if isinstance(ledger, Ledger) else Ledger.open(ledger, create=True, waiting=progress)).reserve(
            whole,
            method,
            epsilon=None if unbounded else asked,
            delta=asked_delta,
            parameters={**values, **_beyond(wanted)},
            unit=unit,
            as_published=as_published,
        )
    with settling(entry, derive, lambda: curator.contacted):
        found, rest = attributes_before(curator, wanted, eps, failure - flow_delta, said.append)
        flow_epsilon = eps * (1 - wanted.times - wanted.attributes_share)
        asked_before = len(curator.charges)
        if not found:  # nothing to release of them: the control flow has what is left
            flow_epsilon, rest = flow_epsilon + rest, Fraction(0)
        request = Request(
            epsilon=flow_epsilon,
            delta=flow_delta,
            as_published=as_published,
            progress=progress or (lambda text, fraction: None),
            score=lambda original, released: relative_log_similarity(original, released).value,
            remark=said.append,
        )
        released = chosen.run(curator, request, **values)
        order = noise.generator(source)
        full = None
        if isinstance(released, EventLog):
            if chosen.check is not None:
                chosen.check(released, values)
            full = anonymous(released, order)
            released = full.variants
        name = method + (" (as published)" if as_published else "")
        charges = curator.charges
        target = "control flow (variants)" if full is None else "events"
        last = len(charges)
        done = [(target, name, [*range(asked_before, last)])]
        details = None
        if wanted:
            cases = released_cases(released, order)
            given = times_of(curator, wanted, eps, cases, said.append)
            if given is not None:
                done.append(("timestamps", "times", [*range(last, len(curator.charges))]))
            before = len(curator.charges)
            columns = attributes_of(curator, rest, cases, found)
            if columns.events or columns.cases:
                target = "attributes: " + ", ".join([*columns.cases, *columns.events])
                done.append((target, "attributes", [*range(asked_before), *range(before, len(curator.charges))]))
            details = Details(cases, given, columns)
        seconds = time.perf_counter() - started
    guarantee = derive()
    operations = [_operation(what, how, [guarantee.charges[i] for i in places]) for what, how, places in done]
    return Release(
        method=method,
        as_published=as_published,
        parameters=values,
        variants=released,
        guarantee=guarantee,
        seconds=seconds,
        remarks=(*said, *_remarks(released, asked_delta)),
        order=order,
        operations=tuple(operations),
        details=details,
        full=full,
        entry=entry,
    )


def _beyond(wanted: Wanted) -> dict[str, object]:
    """What was asked for beyond variants, for the ledger."""
    times = {"times": float(wanted.times)} if wanted.times else {}
    shared = {"attributes": list(wanted.attributes), "attributes_share": float(wanted.attributes_share)}
    return {**times, **(shared if wanted.attributes else {})}


def _check_wanted(method: Method, log: EventLog | Variants, as_published: bool) -> None:
    if method.releases != "variants" or method.budget == "none":
        raise ParameterError(
            f"Method {method.name!r} releases no variants that times or attributes could be added to.",
            parameter="times",
        )
    if as_published:
        raise ParameterError(
            "Times and attributes come with certified releases only.",
            parameter="times",
            advice="Leave out --as-published.",
        )
    if isinstance(log, Variants):
        raise ParameterError(
            "Times and attributes need an event log; variants have none.",
            parameter="log",
            advice="Give the log itself, as veilog.read() returns it.",
        )


def check_unit(method: Method, log: EventLog | Variants, unit: Unit, as_published: bool) -> None:
    if as_published or method.budget == "none":
        raise ParameterError(
            "People with several cases are protected by certified, differentially private releases only.",
            parameter="unit",
            advice="Leave out --as-published." if as_published else "Take a method that has an epsilon.",
        )
    if isinstance(log, Variants) and unit.column is not None:
        raise ParameterError(
            f"Whose cases they are ({unit.column!r}) is known of an event log only, not of variants.",
            parameter="log",
            advice="Give the log itself, as veilog.read() returns it.",
        )


def _operation(target: str, method: str, charges: Iterable[Charge]) -> Operation:
    epsilon, delta = compose(charges)
    return Operation(target, method, round_up(epsilon), round_up(delta))


def by_advantage(
    method: Method, advantage: Number, epsilon: Number | None, delta: Number, parameters: dict[str, Any]
) -> tuple[Number | None, dict[str, Any]]:
    """The epsilon that a guessing advantage stands for, or the parameters with it where the method knows it itself."""
    if any(parameter.name == "guessing_advantage" for parameter in method.parameters):
        return epsilon, {**parameters, "guessing_advantage": advantage}
    if method.budget == "none":
        raise ParameterError(
            f"Method {method.name!r} takes neither an epsilon nor a guessing advantage: its guarantee is another one.",
            parameter="guessing_advantage",
        )
    if epsilon is not None:
        raise ParameterError(
            "An epsilon and a guessing advantage are two names for one budget.",
            parameter="guessing_advantage",
            advice="Give one of them.",
        )
    return epsilon_of(advantage, delta=delta), parameters


def budget(method: Method, epsilon: Number | None, delta: Number, delta_is_of_use: bool) -> tuple[Fraction, Fraction]:
    failure = parse_delta(delta)
    if method.budget == "none":
        if epsilon is not None or failure:
            raise ParameterError(
                f"Method {method.name!r} takes no epsilon: its guarantee is another one.", parameter="epsilon"
            )
        return Fraction(0), Fraction(0)
    if epsilon is None:
        raise ParameterError(
            f"Method {method.name!r} needs an epsilon.",
            parameter="epsilon",
            advice="0.1 to 1 are usual; or give a guessing advantage, e.g. 0.2.",
        )
    eps = parse_epsilon(epsilon)
    if method.budget == "epsilon and delta" and failure == 0:
        raise ParameterError(
            f"Method {method.name!r} needs a delta above 0.",
            parameter="delta",
            advice="Take less than one over the number of cases, e.g. --delta 1e-6.",
        )
    if failure and not delta_is_of_use:
        raise ParameterError(f"Method {method.name!r} needs no delta; it costs epsilon only.", parameter="delta")
    return eps, failure


def _remarks(released: Variants, delta: Fraction) -> tuple[str, ...]:
    remarks = []
    empty = int(released.counts[released.lengths == 0].sum())
    if empty:
        remarks.append(f"{empty} of the released cases have no event; a CSV or TSV leaves them out.")
    if released.cases == 0:
        remarks.append("Nothing survived: the release is empty, and its budget is spent. Raise epsilon or delta.")
    elif delta * released.cases > 1:
        remarks.append(
            f"delta = {float(delta):g} is more than one over the {released.cases} released cases: it allows a "
            "mechanism that publishes some person's trace outright. Choose a smaller delta to protect everybody."
        )
    elif delta * released.cases > Fraction(1, 10):
        remarks.append(
            f"delta = {float(delta):g} is close to one over the {released.cases} released cases: it allows some rare "
            f"trace to be published with a probability of up to {float(delta * released.cases):.2g}. Choose a smaller "
            "delta to protect everybody."
        )
    return tuple(remarks)


def _metadata(released: Release) -> Metadata:
    """XES privacy metadata (Rafiei, van der Aalst, "Privacy-Preserving Data Publishing in Process Mining", 2020): one
    numbered child for each operation. Only what the guarantee says; no statistic of the original."""
    details = released.details
    columns = [] if details is None else [*details.columns.cases, *details.columns.events]
    if released.full is not None:
        columns = [*released.full.cases.column_names, *released.full.events.column_names]
    used = [e for prefix, e in _OPTIONAL_EXTENSIONS.items() if any(name.startswith(prefix) for name in columns)]
    anonymizations = tuple(
        Attribute(str(i + 1), None, "container", tuple(_facts(operation, released.guarantee)))
        for i, operation in enumerate(released.operations)
    )
    attributes = [Attribute("privacy:anonymizations", None, "container", anonymizations)]
    timeless = details is None or details.times is None
    if released.full is not None:
        timeless = any(a.key == ARTIFICIAL_TIMES for a in released.full.metadata.attributes)
    if timeless:
        attributes.append(Attribute(ARTIFICIAL_TIMES, True, "boolean"))
    return Metadata(
        version="1.0",
        features="nested-attributes",
        extensions=(*_EXTENSIONS, *used),
        globals=(
            ("trace", (Attribute(ACTIVITY, "", "string"),)),
            ("event", (Attribute(ACTIVITY, "", "string"), Attribute(TIMESTAMP, _EPOCH, "date"))),
        ),
        classifiers=(("Activity", ACTIVITY, "event"),),
        attributes=tuple(attributes),
    )


def _facts(operation: Operation, guarantee: Guarantee) -> Iterable[Attribute]:
    models = ["differential privacy"] if guarantee.proven else []
    models += [statement.model for statement in guarantee.statements]
    facts: list[tuple[str, Any, str]] = [
        ("privacy:type", ", ".join(models) or "none proven", "string"),
        ("privacy:level", f"{guarantee.unit}: {guarantee.neighbours}", "string"),
        ("privacy:target", operation.target, "string"),
        ("privacy:method", operation.method, "string"),
        ("privacy:status", guarantee.status, "string"),
    ]
    pairs = (
        ("privacy:epsilon", operation.epsilon if guarantee.proven else None),
        ("privacy:delta", operation.delta if guarantee.proven else None),
        ("privacy:guessing_advantage", guarantee.guessing_advantage),
        ("privacy:nominal_epsilon", guarantee.nominal_epsilon),
        ("privacy:nominal_delta", guarantee.nominal_delta),
    )
    facts += [(key, value, "float") for key, value in pairs if value is not None]
    facts += [("privacy:assumptions", " ".join(guarantee.assumptions), "string")] if guarantee.assumptions else []
    held = " ".join(statement.holds for statement in guarantee.statements)
    facts += [("privacy:holds", held, "string")] if held else []
    facts += [("privacy:reason", "; ".join(guarantee.reasons), "string")] if guarantee.reasons else []
    facts.append(("privacy:software", f"veilog {__version__}", "string"))
    return (Attribute(*fact) for fact in facts)
