"""The command that compares a release with its original, and logs for measuring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from veilog._files import atomic_target, check_writable
from veilog.charts import comparison_svg
from veilog.cli.shared.log_input import (
    Output,
    named,
    read_grouped,
    read_log,
    read_released,
    show_findings,
    show_progress,
)
from veilog.cli.shared.measures import comparison_table, comparison_view, rules_table
from veilog.cli.shared.options import DEFAULT_GROUPING, DEFAULT_READING, Details, Grouping, HeldOut, Json, Log, Reading
from veilog.cli.shared.people import SEEMING, Whose
from veilog.cli.shared.terminal import CALL
from veilog.errors import ParameterError, VeilogError
from veilog.logs.eventlog import ACTIVITY, CASE, EventLog
from veilog.logs.findings import Finding
from veilog.logs.input.loader import engine_of
from veilog.logs.input.source import Source
from veilog.logs.tables.table_reader import is_large, table_reader_of
from veilog.logs.variants import Variants
from veilog.measures import Comparison
from veilog.measures import compare as compare_logs
from veilog.measures.comparison import Line
from veilog.measures.measure import MEASURES, Pair
from veilog.measures.use_cases import USE_CASES, UseCaseOptions
from veilog.measures.use_cases import use_cases_by_name as use_cases_named
from veilog.messages import Message, OwnerMessage
from veilog.privacy.partition import same_cases
from veilog.releasing.prior import PublicPrior
from veilog.releasing.request import OPTIONS
from veilog.report.release_facts import facts_of_file
from veilog.rules.rules import ReleaseRules

WHOLE = 128 << 20
"""Bytes up to which tables are read with times and attributes; larger ones give variants."""
_PACKED = 8
"""Factor by which a packed or Parquet file grows when it is read."""


def _read_released(path: Path, reading: Reading, grouping: Grouping) -> tuple[EventLog | Variants, tuple[Finding, ...]]:
    """Return a release, or a large one's variants, with its findings.

    If the original's columns have other names, the release is read by the usual ones, as veilog writes them.
    """
    source = named(path, reading, released=True)
    tabular = table_reader_of(source)
    names = {CASE, ACTIVITY} if tabular is None else set(tabular.columns(source))
    said = {name for name in (reading.case, reading.activity, reading.timestamp, reading.start) if name is not None}
    if {CASE, ACTIVITY} <= names and not said <= names:
        source.options = replace(source.options, case=None, activity=None, timestamp=None, start=None, time_format=None)
    if is_large(source) and reading.map is None:
        source.options = replace(
            source.options, memory_limit=grouping.memory_limit, temp_directory=grouping.temp_directory
        )
        found, findings = read_grouped(source, reading)
        return found.variants, findings
    log = read_released(source, reading)
    return log, log.findings


def read_to_measure(
    source: Source, reading: Reading, grouping: Grouping, *, most: int | None = WHOLE
) -> tuple[EventLog | Variants, tuple[Finding, ...]]:
    """Return the log, or its variants alone, with the findings.

    It is the variants if the log has more than ``most`` bytes, or if another engine or less memory was chosen.
    """
    larger = _PACKED if source.packed or source.suffix == ".parquet" else 1
    small = source.is_file and (most is None or source.size * larger <= most)
    if engine_of(source) is None or (grouping == DEFAULT_GROUPING and small):
        log = read_log(source, reading)
        return log, log.findings
    found, findings = read_grouped(source, reading)
    return found.variants, findings


def say_narrow(out: Output, person: str | None) -> None:
    """Show a warning on intervals of attacks that are held against other persons."""
    if person is not None:
        out.show(Text(str(Message("intervals-perhaps-too-narrow", column=person)), style="dim"))


def say_person(out: Output, person: str | None, whose: Whose) -> None:
    """Show the column taken for persons if none was chosen: the guess may be wrong."""
    if person is not None and whose.person is None:
        out.show(Text(str(Message("people-seem-told-by", column=person)), style="yellow"))


def _say_groups(out: Output, original: EventLog | Variants, released: EventLog | Variants) -> None:
    """Show a warning if a release has groups of activities that its original lacks."""
    variants = original if isinstance(original, Variants) else original.variants
    if original.mapped or isinstance(released, Variants) or {*released.variants.labels} <= {*variants.labels}:
        return
    with suppress(VeilogError):  # without a guarantee, or of a method that veilog does not know
        for condition in facts_of_file(released).guarantee.conditions:
            if condition.code == "activities-mapped":
                out.show(Text(str(Message("groups-not-of-original", said=condition.text)), style="yellow"))


Another = Annotated[Path | None, Parameter(help="Another release of the same log that an attacker may have.")]


@Parameter(name="*")
@dataclass(frozen=True)
class MeasureOptions:
    """Options of measuring beyond the usual, and its use cases."""

    models: Annotated[
        bool, Parameter(negative="--no-models", help="Quality of the process model discovered from the release.")
    ] = True
    pm4py: Annotated[
        bool,
        Parameter(negative="", help="Discover and replay that model with pm4py (extra 'models'), for up to 300 s."),
    ] = False
    alignments: Annotated[
        bool,
        Parameter(negative="", help="For discovery: also compute fitness by optimal alignments (extra 'alignments')."),
    ] = False
    anomalies: Annotated[
        bool, Parameter(negative="", help="Also measure the share of cases that look normal (extra 'anomalies').")
    ] = False
    exact: Annotated[
        bool,
        Parameter(
            negative="",
            help="Find the similarity of many variants exactly, or in a narrower interval. It may take minutes.",
        ),
    ] = False
    use_cases: Annotated[
        str, Parameter(help=f"Use cases to measure: all, or some of {', '.join(USE_CASES)}, with commas between.")
    ] = ""
    model: Annotated[
        Path | None,
        Parameter(help="For conformance: a model (BPMN, PNML, PTML) or a list of constraints to check against."),
    ] = None
    rules: Annotated[
        Path | None, Parameter(help="File of rules (TOML, JSON): also show the share of cases that obey each.")
    ] = None
    prior: Annotated[
        tuple[Path, ...],
        Parameter(negative="", help="Prior of the release: also show how similar it is as it is. Repeatable."),
    ] = ()
    prior_map: Annotated[Path | None, Parameter(help=OPTIONS["prior_map"].help)] = None
    predict: Annotated[
        tuple[str, ...], Parameter(negative="", help="For prediction: a case attribute to predict. Repeatable.")
    ] = ()
    return_days: Annotated[
        float | None, Parameter(help="For returns: days within which a person comes back; default 30.")
    ] = None

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the use cases by name."""
        return use_cases_named([name.strip() for name in self.use_cases.split(",") if name.strip()])

    def asked(self, person: str | bool) -> UseCaseOptions:
        """Return the options of use cases; refuse at once those that no use case takes."""
        wanted = self.wanted
        for given, option, use_case in (
            (self.model, "--model", "conformance"),
            (self.predict, "--predict", "prediction"),
            (self.alignments, "--alignments", "discovery"),
            (self.return_days is not None, "--return-days", "returns"),
        ):
            if given and use_case not in wanted:
                names = ",".join((*wanted, use_case))
                parameter = option.strip("-")
                raise ParameterError(
                    "use-case-not-asked-for", parameter=parameter, option=option, use_case=use_case, names=names
                )
        if self.model is not None:
            from veilog.measures.use_cases.conformance import read_model  # here, as only a model needs it

            read_model(self.model)
        if self.alignments:
            from veilog.measures.process_model import check_alignments

            check_alignments()
        days = 30.0 if self.return_days is None else self.return_days
        return UseCaseOptions(self.model, self.predict, self.pm4py, self.alignments, person=person, return_days=days)


MAIN_MEASURES = MeasureOptions()


def compare(
    original: Log,
    released: Log,
    *,
    measured: MeasureOptions = MAIN_MEASURES,
    chart: Annotated[Path | None, Parameter(help="File (.svg) for a chart of times and variants of both logs.")] = None,
    control: HeldOut = None,
    second: Another = None,
    whose: Whose = SEEMING,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    details: Details = False,
    json: Json = None,
) -> None:
    """Measure the utility of a release.
    The numbers are confidential: they come from the raw log.

    veilog measures only the variants of an original in several files, in a table of an engine, or in Parquet files of
    more than 5,000,000 events. The similarity of logs of many variants is bounded unless you ask for --exact.
    """
    out = Output(json, original, released)
    _check_chart(chart)
    wanted, asked, rules = measured.wanted, measured.asked(whose.asked()), ReleaseRules.of(measured.rules)
    public = PublicPrior.of(measured.prior, measured.prior_map)
    source = named(original, reading, grouping)
    first, noticed = read_to_measure(source, reading, grouping, most=0 if is_large(source) else None)
    person = whose.column(first)
    after, noticed_after = _read_released(released, reading, grouping)
    _say_groups(out, first, after)
    others = None if control is None else read_log(named(control, reading), reading)
    again = None if second is None else _read_released(second, reading, grouping)[0]
    with show_progress() as progress:
        result = compare_logs(
            first,
            after,
            models="pm4py" if measured.models and measured.pm4py else measured.models,
            anomalies=measured.anomalies,
            use_cases=wanted,
            asked=asked,
            control=others,
            second=again,
            exact=measured.exact,
            progress=progress,
        )
    if isinstance(first, Variants) and (lacking := [*_missing_measures(result)]):
        out.show(str(Message("original-variants-only", log=original.name, lacking=", ".join(lacking))))
    if wanted or others is not None:
        say_person(out, person, whose)
    written = () if chart is None else (chart,)
    kept: dict[str, Any] = {} if rules is None else {"rules": _obedience(rules, first, after)}
    as_it_is = None if public is None else _similarity(first, after, public.variants, measured.exact)
    kept |= {} if as_it_is is None else {"prior": as_it_is.to_json()}
    _show(out, result, details, written, {"person": person} | kept, (original, noticed), (released, noticed_after))
    if rules is not None:
        out.show(rules_table(kept["rules"]))
    if as_it_is is not None:
        out.show(str(OwnerMessage("prior-as-it-is-similar", similarity=as_it_is.shown)))
    say_narrow(out, None if others is None else person)
    if chart is not None:
        _draw(out, result, chart)


def _similarity(original: EventLog | Variants, released: EventLog | Variants, prior: Variants, exact: bool) -> Line:
    """Return the similarity of a prior by itself, which no query has improved."""
    name, same = "relative_log_similarity", same_cases(original, released)
    assert isinstance(same, EventLog | Variants)
    found = MEASURES[name].found(Pair(same, prior, exact=exact))
    (quantity,) = MEASURES[name].quantities
    return Line(name, quantity, found.value, found.interval, quantity.meaning)


def _obedience(
    rules: ReleaseRules, original: EventLog | Variants, released: EventLog | Variants
) -> list[dict[str, Any]]:
    """Return the shares of cases in both logs that obey all rules, and each."""
    words = [None, *(rule.message for rule in rules.items)]
    shares = (rules.broken_in(log).obeyed for log in (original, released))
    return [
        {"rule": None if said is None else said.english, "original": before, "released": after}
        for said, before, after in zip(words, *shares, strict=True)
    ]


def _draw(out: Output, result: Comparison, chart: Path) -> None:
    with atomic_target(chart, overwrite=CALL.get().overwrite) as file:
        file.write(comparison_svg(result).encode())
    out.show(f"chart written to {chart}")


def _missing_measures(result: Comparison) -> Iterator[str]:
    """Yield the titles of the measures that need the events of the original."""
    for name, reason in result.not_computed.items():
        of_variants = reason.code in ("measure-of-variants-only", "durations-of-variants")
        if of_variants and isinstance(reason, VeilogError) and reason.message.values["name"] == "original":
            yield MEASURES[name].quantities[0].title


def _show(
    out: Output,
    result: Comparison,
    details: bool,
    written: tuple[Path, ...],
    told: dict[str, Any],
    *read: tuple[Path, tuple[Finding, ...]],
) -> None:
    """Show the measurements, and the findings in the original and in the release."""
    findings = {
        name: [finding.to_json() for finding in found]
        for name, (_, found) in zip(("original", "released"), read, strict=True)
    }
    out.json(result.to_json() | told | {"findings": findings}, *written)
    out.show(comparison_table(result) if details else comparison_view(result))
    for log, found in read:
        show_findings(out, found, log)


def _check_chart(chart: Path | None) -> None:
    """Refuse a chart that cannot be written. No log ends in .svg, so none is lost."""
    if chart is None:
        return
    if chart.suffix.lower() != ".svg":
        raise ParameterError("chart-not-svg", parameter="chart", name=chart.name)
    check_writable(chart)
