"""Previews before the budget is spent: the command twin, and dry runs."""

from __future__ import annotations

import glob
import json as plain_json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from veilog._files import text_of
from veilog._plain import to_json
from veilog.cli.confirmation import cannot_be_undone, forecast_ledger, report_cost_on_interrupt
from veilog.cli.shared.ledger_options import DEFAULT_LEDGER, Keeping, account_of, show_account, show_notes
from veilog.cli.shared.log_input import (
    Output,
    named,
    open_source,
    read_events,
    read_variants,
    show_progress,
)
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    GROUPS,
    WHOLE,
    Grouping,
    Json,
    Reading,
    quote_path,
)
from veilog.cli.shared.paths import is_pipe
from veilog.cli.shared.releases import expected_view, guarantee_panel
from veilog.cli.shared.requests import EACH_CASE, Persons, ReleaseOptions, activity_names, load_for_request
from veilog.cli.shared.tables import info_table
from veilog.cli.shared.terminal import CALL
from veilog.errors import InputError, ParameterError, meant
from veilog.logs import files
from veilog.logs.eventlog import EventLog, Statistics
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.synthetic.twins import Sizes
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.budgets import parse_epsilon
from veilog.privacy.domain import FROM_LOG
from veilog.privacy.unit import Unit
from veilog.releasing.owner import uncounted_cases
from veilog.releasing.preview import Expected, Preview, Twin, cases_with, sizes_of_log
from veilog.releasing.preview import twin as make_twin
from veilog.releasing.request import ReleaseRequest

_NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?", re.IGNORECASE)


@Parameter(name="*")
@dataclass(frozen=True)
class KnownSizes:
    """Sizes of a log that are known without a query."""

    cases: Annotated[int | None, WHOLE, Parameter(help="Approximate number of cases, from public information.")] = None
    length: Annotated[float | None, Parameter(help="Approximate mean number of events per case.")] = None
    variants: Annotated[int | None, WHOLE, Parameter(help="Approximate number of variants.")] = None
    frequent: Annotated[
        float | None, Parameter(help="Approximate share of cases with the most frequent variant, e.g. 0.3.")
    ] = None

    def facts(self) -> dict[str, Any]:
        """Return the sizes that were given."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}


UNKNOWN = KnownSizes()
_USUAL = "prediction"
"""Use case of a dry run, which takes a moment."""


@Parameter(name="*", group=GROUPS["preview"])
@dataclass(frozen=True)
class PreviewOptions(KnownSizes):
    """Options of a preview of a release, which the command calls a dry run."""

    dry_run: Annotated[
        bool,
        Parameter(
            negative="", help="Query and write nothing; show the guarantee, and the expected utility on synthetic logs."
        ),
    ] = False
    sizes: Annotated[
        str | None,
        Parameter(
            help="For a dry run: sizes from a file of veilog twin or of a release; log: the exact ones (confidential)."
        ),
    ] = None
    use_cases: Annotated[
        str | None,
        Parameter(help="For a dry run: use cases to estimate the utility for; default prediction."),
    ] = None

    def facts(self) -> dict[str, Any]:
        return {name: value for name, value in super().facts().items() if name not in ("dry_run", "sizes", "use_cases")}

    def refuse_alone(self) -> None:
        """Refuse options that only a dry run takes."""
        given = [*self.facts(), *(["sizes"] if self.sizes else []), *(["use_cases"] if self.use_cases else [])]
        if given:
            raise ParameterError("option-for-dry-run", parameter=given[0], given=given[0])


NO_PREVIEW = PreviewOptions()


def activities_of(text: str | None, *words: str) -> int | tuple[str, ...] | None:
    """Return the number of activities, or their names: ``16``, ``a,b,c`` or ``@FILE``."""
    if text is None or text.strip().isdecimal():
        return None if text is None else int(text)
    if _NUMBER.fullmatch(text.strip()):
        raise ParameterError("twin-activities-not-understood", parameter="activities", text=text.strip())
    return activity_names(text, words)


def twin(
    log: Annotated[Path | None, Parameter(help="Event log to ask, with --epsilon; not needed without.")] = None,
    out: Annotated[Path | None, Parameter(help="File for the synthetic log; its suffix sets the format.")] = None,
    *,
    activities: Annotated[str | None, Parameter(help="Number of activities, or their names: a,b,c or @FILE.")] = None,
    known: KnownSizes = UNKNOWN,
    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="Budget for querying the sizes of the log with noise, e.g. 0.05."),
    ] = None,
    persons: Persons = EACH_CASE,
    number: Annotated[int, WHOLE, Parameter(help="Number of the synthetic log; another gives another log.")] = 0,
    keeping: Keeping = DEFAULT_LEDGER,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Make a synthetic log of the same size,
    to preview methods and budgets without using budget.

    veilog twin --out twin.xes --cases 1000 --activities 16 --length 14 touches no data. veilog twin LOG --out twin.xes
    --epsilon 0.05 queries LOG for its sizes with noise; its ledger records that like any release.
    """
    screen = Output(json)
    new, warned = "", dict[str, object]()
    notes: list[OwnerMessage] = []
    if out is not None:
        files.check_target(out)
    declared = {"activities": activities_of(activities), "number": number, **known.facts(), **persons.whom()}
    protected = persons.checked()
    if epsilon is None and log is not None:
        raise ParameterError(
            "twin-option-without-meaning",
            parameter="log",
            name=log.name,
            value="TWIN.xes, and without the log" if log.exists() else log.name,
        )
    if epsilon is None:
        found = make_twin(**declared)
    else:
        if log is None:
            raise ParameterError("twin-epsilon-without-log", parameter="log")
        new = keeping.checked(log)
        source = open_source(screen, log, reading, grouping)
        asked = read_events(source, reading) if persons.by_column else read_variants(source, reading)
        found = _query_twin(asked, epsilon, keeping, log, declared)
        notes = [] if isinstance(asked, Variants) else uncounted_cases(asked, protected)
        if found.guarantee is not None:
            of_account, warned = keeping.warnings(asked, found.entry, found.guarantee)
            notes += of_account
    account = account_of(found.entry)
    told = {"owner_only": {"notes": to_json(notes), **warned}} if notes else {}
    screen.json(found.to_json() | told, account=account)
    _show(screen, found)
    show_account(screen, found.entry, account, new)
    show_notes(screen, notes)
    if out is not None:
        _write(screen, found, out, protected)


def _write(screen: Output, found: Twin, out: Path, unit: Unit) -> None:
    """Write the synthetic log, and show how to try a release on it."""
    files.write(found.log, out, overwrite=CALL.get().overwrite)
    whom = "" if unit.name == "case" else f"--unit person --max-cases {unit.most_cases} "
    tried = f"veilog release {quote_path(out)} TRY.xes -m evolve ... {whom}--no-ledger"
    screen.show(Text(f"synthetic log written to {out}; {tried} uses no budget"))


def _query_twin(
    log: EventLog | StoredLog | Variants, epsilon: str, keeping: Keeping, path: Path, declared: dict[str, Any]
) -> Twin:
    """Return the synthetic log of the log's noisy answers, which use epsilon."""
    with show_progress() as progress:
        ledger = keeping.of(path, progress)
        with report_cost_on_interrupt("twin", log, ledger, parse_epsilon(epsilon)):
            found = make_twin(log, epsilon=epsilon, ledger=ledger or False, **declared)
    cannot_be_undone("sizes-paid")
    return found


def _show(screen: Output, found: Twin) -> None:
    """Show a synthetic log's sizes, and the epsilon that they used."""
    variants = found.log.variants
    screen.show(info_table(Statistics.of(variants, None, None), variants, "a synthetic log"))
    if found.guarantee is None:
        screen.show(Text("Made from declared sizes only: no data were used.", style="dim"))
    else:
        if found.sizes.off is not None:
            within = math.ceil(math.log(20) * found.sizes.off[0] / math.sqrt(2))  # of Laplace noise with this deviation
            noisy = Message("twin-cases-noisy", cases=found.sizes.cases, within=within)
            screen.show(Text(f"\n{noisy}", style="yellow"))
        screen.show(Text("\nThe queries of its sizes used:", style="dim"))
        screen.show(guarantee_panel(found.guarantee, as_published=False))


def show_preview(
    out: Output,
    log: Path,
    asked: ReleaseOptions,
    method: str,
    parameters: Mapping[str, str],
    preview: PreviewOptions,
    keeping: Keeping,
    reading: Reading,
    grouping: Grouping,
) -> None:
    """Show the guarantee and expected utility of a release, without a query.

    The log is read as its release would read it, once, and only for its ledger, its losses or its exact sizes.
    """
    declared: dict[str, Any] = preview.facts()
    if asked.activities is not None and asked.activities.isdecimal():  # their number: a dry run needs no names
        declared |= {"activities": int(asked.activities)}
        asked = asked.having(activities=FROM_LOG)
    planned = asked.request(method, parameters)
    read = cache(lambda: load_for_request(named(log, reading, grouping), planned, reading))
    sizes = None
    if preview.sizes is not None:
        sizes = sizes_of_log(read(), planned) if preview.sizes == FROM_LOG else _sizes_in(Path(preview.sizes))
    use_cases = _USUAL if preview.use_cases is None else preview.use_cases
    wanted = tuple(name.strip() for name in use_cases.split(",") if name.strip())
    with show_progress() as progress:
        expected = planned.expected(
            sizes, use_cases=wanted, owner_only=preview.sizes == FROM_LOG, progress=progress, **declared
        )
    found = Preview(planned.cost, expected, tuple(planned.attribute_errors(expected.sizes.cases).items()))
    ledger = keeping.of(log, seeded=planned.seed is not None)
    account = None if ledger is None else forecast_ledger(ledger, planned, read())
    own: dict[str, Any] = (
        {"losses": ()} if is_pipe(log) or not log.exists() else _confidential_json(planned, read(), expected)
    )
    facts = {"dry_run": True, **found.to_json(), "owner_only": to_json(own)}
    out.json(facts, account=account)
    lines = [str(loss.message) for loss in own["losses"]]
    lines += [str(own["survivors"].message)] if "survivors" in own else []
    if lines:
        out.show(Text("Confidential, from the log itself:", style="bold magenta"))
    for line in lines:
        out.show(Text(f"  {line}", style="magenta"))
    rows: list[tuple[str, str | Text]] = [*_case_rows(planned, exact=expected.owner_only)]
    rows += [] if account is None else [("account", account.line)]
    out.show(expected_view(expected, planned.cost, rows))
    for name, share in found.attribute_errors:
        out.show(Text(f"{name}: noise alone gives up to about {100 * share:.0f} % of the cases another value."))


def _confidential_json(
    planned: ReleaseRequest, log: EventLog | StoredLog | Variants, expected: Expected
) -> dict[str, Any]:
    """Return confidential facts: losses, and how many of the log's activities survive."""
    looked_at = log if planned.subset is None else planned.subset.of_log(log)
    found = expected.survivors
    some = {} if found is None else {"survivors": found.among(cases_with(variants_of(looked_at)))}
    return {"losses": planned.losses(log), **some}


def _case_rows(planned: ReleaseRequest, *, exact: bool) -> Iterator[tuple[str, str]]:
    """Yield the cases that the sizes are of."""
    if planned.subset is not None:
        code = "sizes-are-of-subset" if exact else "sizes-taken-for-subset"
        yield "of", str(Message(code, subset=planned.subset.in_words))
    if planned.unit.column is not None and not exact:
        most = planned.unit.most_cases
        yield "of people", f"the sizes are taken to be those of the cases that count, at most {most:,} of each"


def _sizes_in(path: Path) -> Sizes:
    """Return the sizes in a file of ``veilog twin --json``, or of a public release."""
    if path.suffix.lower() != ".json":
        if not path.exists() and not glob.has_magic(str(path)):
            raise InputError("sizes-file-missing", path=path, meant=meant(path.name, _similar_files(path)))
        return Sizes.of(files.read_variants(path))
    try:
        told = plain_json.loads(text_of(path))
        kept = dict(told["sizes"])
        found = [name for name in ("lengths", "off", "answers", "held") if kept.get(name) is not None]
        several: dict[str, Any] = {name: tuple(kept.pop(name)) for name in found}
        return Sizes(**kept, **several)
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError("sizes-file-invalid", path=path, meant=meant(path.name, _similar_files(path))) from error


def _similar_files(path: Path) -> list[str]:
    """Return the files that a missing one may have meant; ``log`` is a word."""
    if path.exists() or not path.parent.is_dir():
        return []
    return [FROM_LOG, *(other.name for other in path.parent.iterdir())]
