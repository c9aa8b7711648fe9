"""Variant methods called by name inside others, and their releases made logs."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal

from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Variants
from veilog.methods._events.assemble import Wanted, assemble_log
from veilog.methods._events.extras import delta_shared_out, enrich
from veilog.methods._events.times.calendar import check as check_window
from veilog.methods.method import Method, OfVariants, Request
from veilog.methods.registry import METHODS
from veilog.methods.settings import Range, Settings
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain, Fact, Window


@dataclass(frozen=True)
class Query:
    """Variant method with its settings, ready to be run."""

    method: Method
    settings: Settings

    @property
    def spends_delta(self) -> bool:
        return self.method.spends_delta(self.settings)

    def ask(self, curator: Curator, request: Request) -> Variants:
        """Return its release at the request's budget, with delta only if it needs some."""
        if self.method.needs_delta and request.delta == 0:
            raise ParameterError("query-delta-missing", parameter="delta", name=self.method.name)
        delta = request.delta if self.spends_delta else Fraction(0)
        released = self.method.run(curator, replace(request, delta=delta), self.settings)
        assert isinstance(released, Variants), "variant_query takes methods that release variants only"
        return released


def variant_query(name: str, parameters: str | None) -> Query:
    """Return the variant method of this name, with its parameters.

    They are written as ``name=value,name=value``.
    """
    possible = [method.name for method in METHODS.values() if isinstance(method.releases, OfVariants)]
    if name not in possible:
        raise ParameterError(
            "query-method-unknown",
            parameter="query",
            name=name,
            meant=meant(name, possible),
            names=", ".join(possible),
        )
    given: dict[str, str] = {}
    for text in names_in(parameters):
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise ParameterError("query-parameters-not-understood", parameter="query_parameters", text=text)
        given[key.strip()] = value.strip()
    return Query(METHODS[name], METHODS[name].parse(given))


@dataclass(frozen=True, kw_only=True)
class QuerySettings(Settings):
    """Settings of a method that runs a variant method and adds times."""

    query: Annotated[str | None, "the variant method that traces come from; evolve"] = None
    query_parameters: Annotated[str | None, "parameters of the query: name=value,name=value"] = None
    times_share: Annotated[float, "certified: share of epsilon for times; 0 releases none", Range(0, 0.9)] = 0.3
    start_window: Annotated[str | None, "certified: START..END in which cases start; log; or a synthetic year"] = None


def needs_of_query(settings: QuerySettings) -> frozenset[Fact]:
    """Return the public facts that the query needs."""
    query = variant_query(settings.query or "evolve", settings.query_parameters)
    return query.method.needs(query.settings)


def names_in(text: str | None) -> tuple[str, ...]:
    """Return the names in ``a,b,c``."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def wanted_of(
    settings: QuerySettings, attribute_names: str | None = None, attribute_share: float | None = None
) -> Wanted:
    """Return the contents of a release beyond variants, from a method's settings."""
    times_share, start_window = settings.times_share, settings.start_window
    names = names_in(attribute_names)
    if start_window is not None and not times_share:
        raise ParameterError("start-window-without-times", parameter="start_window")
    return Wanted.of(
        str(times_share) if times_share else None,
        names or None,
        None if attribute_share is None else str(attribute_share),
        None if start_window is None else _window(start_window),
    )


def _window(text: str) -> Window | Literal["log"]:
    if text == "log":
        return "log"
    start, dots, end = text.partition("..")
    try:
        if not dots:
            raise ValueError
        window = datetime.datetime.fromisoformat(start.strip()), datetime.datetime.fromisoformat(end.strip())
    except ValueError:
        raise ParameterError("start-window-not-understood", parameter="start_window", text=text) from None
    declared = Domain(window=window).window
    check_window(declared)
    return declared or window


def released_log(
    curator: Curator,
    request: Request,
    wanted: Wanted,
    variants_at: Callable[[Request], Variants],
    spends_delta: bool,
) -> EventLog:
    """Return a certified release of variants, made a log with times and attributes.

    These use the shares of ``wanted``. ``variants_at`` gets a request that holds what is left. The charges add up to
    the request's budget. The delta is shared out among ``variants_at``, if it ``spends_delta``, the values of
    attributes that are not declared, and times (:func:`delta_shared_out`).
    """
    open_values = any(curator.domain.values_of(name) is None for name in wanted.attributes)
    others, times = spends_delta + open_values, bool(wanted.times)
    if request.delta and not (others or times):
        raise ParameterError("query-delta-not-needed", parameter="delta")
    each, for_times = delta_shared_out(request.delta, others, times)
    for_flow, for_values = each * spends_delta, each * open_values
    made = enrich(
        curator,
        wanted,
        request.epsilon,
        for_values,
        for_times,
        lambda epsilon: variants_at(replace(request, epsilon=epsilon, delta=for_flow)),
        request.remark,
    )
    return assemble_log(made.details, Metadata())
