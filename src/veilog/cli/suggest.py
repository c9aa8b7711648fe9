"""The command suggest: a method that fits a log."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Group
from rich.table import Table
from rich.text import Text

from veilog._plain import to_json
from veilog.cli.confirmation import cannot_be_undone, report_cost_on_interrupt
from veilog.cli.preview import activities_of
from veilog.cli.shared.ledger_options import DEFAULT_LEDGER, Keeping, account_of, show_account, show_notes
from veilog.cli.shared.log_input import (
    Output,
    fits,
    open_source,
    read_events,
    read_log,
    read_variants,
    show_progress,
)
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    Grouping,
    Json,
    Log,
    Reading,
    options,
    quote_path,
)
from veilog.cli.shared.releases import guarantee_panel
from veilog.cli.shared.requests import RequestOptions, options_of
from veilog.cli.shared.tables import key_values, plain_table
from veilog.methods import method_named
from veilog.privacy.account.budgets import parse_delta, parse_epsilon, parse_share
from veilog.privacy.domain import FROM_LOG, Domain
from veilog.releasing.owner import person_messages
from veilog.releasing.suggest import Suggestion
from veilog.releasing.suggest import suggest as suggest_method

_SHOWN = 8
"""Number of methods of a ranking that are shown; the JSON has all of them."""


@options_of(
    "suggest",
    *("delta", "unit", "max_cases", "without_person", "activities", "prior", "prior_map"),
    delta="Total delta of the suggestion and the release.",
    activities=(
        "Public activities: a,b,c or @FILE, or their number; log if all activities of the log are public. Without it "
        "the expectation is less certain."
    ),
)
class SuggestOptions(RequestOptions):
    """Options of budget, use case, protected unit, and public activities."""

    share: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="Share of both for the suggestion; the rest is left for the release.",
            show_default=True,
        ),
    ] = "0.1"
    for_: Annotated[
        Literal["similarity", "prediction", "discovery", "conformance"],
        Parameter("--for", help="Use case to rank methods by, from measurements.", show_default=True),
    ] = "similarity"


OF_RELEASE = SuggestOptions()


def suggest(
    log: Log,
    *,
    epsilon: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="Total budget of the suggestion and the release.")
    ],
    asked: SuggestOptions = OF_RELEASE,
    keeping: Keeping = DEFAULT_LEDGER,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Suggest a method for a log, with reasons.
    The noisy answers it needs use a share of the budget."""
    out = Output(json, log)
    parse_epsilon(epsilon)
    parse_delta(asked.delta)
    parse_share(asked.share, "share")
    protected = asked.checked()
    new = keeping.checked(log)
    source = open_source(out, log, reading, grouping)
    whole = read_events(source, reading) if asked.by_column else read_log(source, reading) if fits(source) else None
    variants = read_variants(source, reading) if whole is None else whole.variants
    how_many, named_ones = _activities(asked.activities)
    spent = parse_epsilon(epsilon) * parse_share(asked.share, "share")
    with show_progress() as progress:
        ledger = keeping.of(log, progress)
        with report_cost_on_interrupt("suggest", variants, ledger, spent):
            found = suggest_method(
                whole if asked.by_column and whole is not None else variants,
                epsilon=epsilon,
                for_=asked.for_,
                share=asked.share,
                domain=reading.groups(Domain.of(named_ones)),
                activities=how_many,
                ledger=ledger or False,
                delta=asked.delta,
                prior=asked.prior or None,
                prior_map=asked.prior_map,
                **asked.whom(),
            )
            progress("previewing it on synthetic logs", None)
            found.expected  # noqa: B018 - found out while something is shown
    cannot_be_undone("suggestion-paid")
    # A map declares the activities of the release, too.
    declared = (
        "" if reading.map is not None else _activities_option(found, None if named_ones is None else asked.activities)
    )
    account = account_of(found.entry)
    of_account, warned = keeping.warnings(variants, found.entry, found.guarantee)
    notes = [*([] if whole is None else person_messages(whole, protected)), *of_account]
    facts = found.to_json() | {"owner_only": {"notes": to_json(notes), **warned}}
    out.json(facts, account=account)
    out.show(_view(found))
    used = options(keeping, reading, grouping)
    out.show(Text(f"  veilog release {quote_path(log)} TARGET {found.arguments()}{declared}{used}"), whole=True)
    show_notes(out, notes)
    show_account(out, found.entry, account, new)


def _activities(text: str | None) -> tuple[int | None, tuple[str, ...] | Literal["log"] | None]:
    """Return the number of activities, or their names, or that the log's are public."""
    if text == FROM_LOG:
        return None, FROM_LOG
    found = activities_of(text, FROM_LOG)
    return (found, None) if isinstance(found, int) else (None, found)


def _order(found: Suggestion) -> list[Table]:
    """Return the methods by their measurements for the use case."""
    if not found.ranking:
        return []
    names = list(found.ranking[0].numbers)
    shown = [name.replace("_", " ") for name in names]
    table = plain_table("method", *shown, right=shown)
    for one in found.ranking[:_SHOWN]:
        table.add_row(one.name, *(f"{one.numbers[name]:.3f}" if name in one.numbers else "-" for name in names))
    return [table]


def _view(found: Suggestion) -> Group:
    style = "bold green" if found.promising else "bold red"
    expected = [] if found.expected is None else [Text(str(found.expected.message), style=style)]
    seen = [("cases", f"about {found.cases:,} (within {found.cases_within:,} in 95 of 100 runs)")]
    if found.covered is not None:
        few = "1 variant" if found.frequent == 1 else f"{found.frequent} variants"
        with_cases = f"{few} with at least about {found.covered:.0%} of the cases"
        seen.append(("frequent", with_cases if found.frequent else "no variant that is surely so"))
    return Group(
        Text(f"{found.method}", style=style),
        Text(str(found.reason)),
        *expected,
        key_values(seen),
        *_order(found),
        *(Text(str(remark), style="yellow") for remark in found.remarks),
        Text("\nThe suggestion itself used:", style="dim"),
        guarantee_panel(found.guarantee, as_published=False),
        Text("With the budget that is left:"),
    )


def _activities_option(found: Suggestion, activities: str | None) -> str:
    """Return a release's option for declared activities, if its method needs them."""
    method = method_named(found.method)
    needed = "activities" in method.needs(method.parse(dict(found.settings)))
    return f" --activities {shlex.quote(activities or '@FILE')}" if needed else ""
