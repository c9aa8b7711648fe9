"""Methods and releases in the terminal. Nothing here computes anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from veilog._language import count_phrase
from veilog.charts import lasting
from veilog.cli.shared.tables import key_values, plain_table
from veilog.logs.variants import Variants
from veilog.measures import Comparison
from veilog.measures.durations import FEW, CaseDurations
from veilog.measures.singling_out.words import briefly_in_words
from veilog.privacy.account.guarantee import Guarantee, Strength, up
from veilog.releasing.account_notes import OF_ACCOUNTS
from veilog.releasing.checks import meaning_of
from veilog.releasing.preview import Expected
from veilog.releasing.result import NOISE_ONLY, Release


def pair(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "none"
    return f"epsilon = {up(epsilon)}" + (f", delta = {up(delta)}" if delta else "")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text.

    A sentence ends before a capital, a digit or a quoted command.
    """
    return re.split(r"(?<!e[.]g[.])(?<!i[.]e[.])(?<=[.!?]) (?=[A-Z0-9`])", text)


_STRENGTH: Mapping[Strength, str] = {
    "strong": "green", "good": "green", "moderate": "yellow", "weak": "red", "none in practice": "red",
}  # fmt: skip


_NOISE_ONLY = "By its own answers, the release cannot be distinguished from noise. Exit status 6."


_CONFIDENTIAL = "(Confidential: from the log itself.)"


def strength_style(guarantee: Guarantee) -> str:
    """Return the colour of a guarantee by its protection level."""
    return _STRENGTH[guarantee.strength]


def _has_nominal(guarantee: Guarantee, *, as_published: bool) -> bool:
    """Return True if the requested budget is not what is proved.

    Groups of cases have no requested budget.
    """
    return (as_published or not guarantee.proven) and guarantee.nominal_epsilon is not None


def guarantee_panel(guarantee: Guarantee, *, as_published: bool) -> Panel:
    """Return the guarantee in words, with all its conditions."""
    lines: list[RenderableType] = [Text(guarantee.in_words(), style=f"bold {_STRENGTH[guarantee.strength]}")]
    meaning = meaning_of(guarantee)
    if meaning is not None:
        lines.append(Text(str(meaning.message(guarantee.unit))))
    if _has_nominal(guarantee, as_published=as_published):
        lines.append(Text(f"nominal (requested): {pair(guarantee.nominal_epsilon, guarantee.nominal_delta)}"))
        lines.append(Text(f"derived (what is proved): {pair(guarantee.epsilon, guarantee.delta)}"))
    for statement in guarantee.statements:
        how = "checked on the release" if statement.checked else "rests on the method, not checked"
        lines.append(Text(f"{statement.model}: {how}. {statement.does_not_protect}", style="yellow"))
    if guarantee.charges:
        lines.append(Text(f"Protects against: telling apart {guarantee.neighbours}."))
        lines.append(Text(f"Noise: {guarantee.numerics}."))
    lines.extend(Text(f"{c.only_if} ({c.code})", style="yellow") for c in guarantee.conditions)
    names = ("question", "for", "noise", "epsilon", "delta")
    charges = plain_table(*names, dim=names)
    shown = guarantee.charges[:8]
    for c in (charge.plain() for charge in shown):
        charges.add_row(c.question, escape(str(c.purpose)), str(c.mechanism), up(c.epsilon), up(c.delta))
    if len(guarantee.charges) > len(shown):
        charges.add_row(f"... {len(guarantee.charges) - len(shown)} more", "", "", "", "")
    if guarantee.charges:
        lines.append(charges)
    return Panel(Group(*lines), title="guarantee", title_align="left", border_style=_STRENGTH[guarantee.strength])


def expected_view(expected: Expected, cost: Guarantee, more: Sequence[tuple[str, str | Text]] = ()) -> Table:
    """Return the output of ``veilog release --dry-run``: guarantee and expectations.

    ``more`` are further rows.
    """
    g, sizes = cost, expected.sizes
    many = "" if sizes.activities is None else f", {sizes.activities:,} activities"
    rows: list[tuple[str, str | Text]] = [
        ("protection", Text(_protection(g), style=f"bold {_STRENGTH[g.strength]}")),
        ("previewed on", f"{expected.twins} synthetic logs of {count_phrase(sizes.cases, 'case')}{many}, "
                     f"{sizes.length:.3g} events each"),
        ("similarity", Text(str(expected.message), style="bold green" if expected.promising else "bold red")),
    ]  # fmt: skip
    if expected.survivors is not None:
        rows.append(("activities", str(expected.survivors.message)))
    if expected.durations is not None:
        rows.append(("durations", f"the relative error of their mean is about {expected.durations}"))
    rows += [(name, f"about {found} of the value of the log itself") for name, found in expected.use_cases]
    if sizes.missing:
        rows.append(("not known", f"{', '.join(sizes.missing)}: declare public values for a narrower interval"))
    if expected.owner_only:
        rows.append(("confidential", Text("Computed from the exact sizes of the log.", style="magenta")))
    return key_values([*rows, *more, ("spent", "nothing: the log was not queried")])


def release_brief(
    released: Release,
    files: Sequence[str],
    kept: Comparison | None = None,
    account: str = "",
    then: str = "",
    log: str = "LOG",
) -> Table:
    """Return the short output of ``veilog release``: a row for each fact.

    ``log`` is the log, and how it was read, in the words of the command.
    """
    ends = [("account", account), ("files", "; ".join(files)), ("next", then)]
    return key_values([*_brief(released, kept, log), *(end for end in ends if end[1])])


def _brief(released: Release, kept: Comparison | None, log: str) -> Iterator[tuple[str, str | Text]]:
    g, v = released.guarantee, released.variants
    yield from _losses(released)
    yield "protection", Text(_protection(g), style=f"bold {_STRENGTH[g.strength]}")
    if _has_nominal(g, as_published=released.as_published):
        yield "requested", f"{pair(g.nominal_epsilon, g.nominal_delta)}; derived: {pair(g.epsilon, g.delta)}"
    if g.proven:
        only = "" if g.subset is None else f" It covers only the {g.subset.in_words}."
        yield "protects", f"{g.protects}{only}"
    yield from _first("conditions", [str(condition.text) for condition in g.conditions], "yellow", brief=True)
    for statement in g.statements:
        yield "instead", f"{statement.holds} {statement.does_not_protect}"
    name = released.method + (" (as published)" if released.as_published else "")
    yield "released", f"{_sizes(v)}, by {name}"
    if kept is not None:
        model = ""
        if kept.fitness is not None and kept.precision is not None:
            model = f" Its model: fitness {kept.fitness:.2f}, precision {kept.precision:.2f}."
        yield "utility", Text(sentences(kept.verdict)[0] + model, style="bold")
        if kept.case_durations is not None:
            yield "durations", _durations(kept.case_durations)
        if kept.singling_out is not None:
            yield "attack test", briefly_in_words(kept.singling_out)
    # Whole, as the last words of a warning are its advice.
    yield from _first("warning", _remarks(released), "yellow")
    yield from _first("confidential", _confidential_lines(released, log), "magenta")


def _remarks(released: Release) -> list[str]:
    """Return the warnings but that of noise, which stands first."""
    return [str(remark) for remark in released.remarks if remark != NOISE_ONLY]


def _losses(released: Release) -> Iterator[tuple[str, Text]]:
    """Yield the first rows: that a release is mere noise, and its confidential losses."""
    if released.noise_only:
        yield "noise only", Text(_NOISE_ONLY, style="bold red")
    for i, loss in enumerate(released.owner_only.losses):
        yield ("" if i else "losses"), Text(f"{loss.message}{'' if i else ' ' + _CONFIDENTIAL}", style="bold magenta")


def _first(name: str, texts: Sequence[str], style: str, *, brief: bool = False) -> Iterator[tuple[str, Text]]:
    """Yield the first text (``brief``: its first sentence) and the number of the rest."""
    for text in texts[:1]:
        shown = sentences(text)[0] if brief else text
        rest = f"{len(texts) - 1} more" if len(texts) > 1 else "the rest" if shown != text else ""
        yield name, Text(f"{shown} ({rest}: --details)" if rest else shown, style=style)


def _sizes(variants: Variants) -> str:
    kinds = f"{count_phrase(variants.cases, 'case')}, {count_phrase(len(variants), 'variant')}"
    return f"{kinds}, {count_phrase(variants.events, 'event')}"


def _protection(guarantee: Guarantee) -> str:
    """Return the guarantee in a sentence."""
    if not guarantee.proven:
        return f"none by differential privacy: {'; '.join(map(str, guarantee.reasons))}"
    given = " if its conditions hold" if guarantee.conditions else ""
    most = "" if guarantee.holds_up_to is None else f" for a log of up to {count_phrase(guarantee.holds_up_to, 'case')}"
    return f"{guarantee.strength}{most}; {pair(guarantee.epsilon, guarantee.delta)} for one {guarantee.unit}{given}"


def _durations(found: CaseDurations) -> str:
    """Return the durations of both logs' cases, and the number of released ones."""
    old, new = found.original, found.released
    halves = f"half up to {lasting(new.median)}, of the original {lasting(old.median)}"
    means = f"on average {lasting(new.mean)}, of the original {lasting(old.mean)}"
    few = " (too few to estimate durations)" if new.cases < FEW else ""
    return f"of {count_phrase(new.cases, 'released case')}{few}: {halves}; {means}"


def _confidential_lines(released: Release, log: str) -> list[str]:
    """Return the notes for the data owner alone."""
    found = [f for f in released.owner_only.findings if f.severity != "info"]
    read = [f"Reading the log, {f.rule}: {f.count:,} {f.policy}. For details: veilog validate {log}." for f in found]
    notes = (*released.owner_only.warnings, *released.owner_only.notes)
    account = [note for note in notes if note.code in OF_ACCOUNTS]
    return [*(str(note) for note in notes if note not in account), *read, *map(str, account)]


def release_view(released: Release, target: str, log: str = "LOG") -> Group:
    """Return the full output of ``veilog release``, in the command's words of the log."""
    v = released.variants
    name = released.method + (" (as published)" if released.as_published else "")
    top = key_values(
        [
            ("released", _sizes(v)),
            ("method", name),
        ]
        + [(f"  {key}", value) for key, value in released.parameters.items() if value is not None]
        + ([] if released.declared_length is None else [("declared length", released.declared_length)])
        + [("written to", target), ("seconds", f"{released.owner_only.seconds:.2f}")]
    )
    losses = key_values(found) if (found := list(_losses(released))) else Text()
    remarks = [Text(remark, style="yellow") for remark in _remarks(released)]
    notes = [Text(f"Confidential: {note}", style="magenta") for note in _confidential_lines(released, log)]
    return Group(losses, top, guarantee_panel(released.guarantee, as_published=released.as_published), *remarks, *notes)
