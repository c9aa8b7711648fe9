"""A release and its guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from veilog._language import counted
from veilog.charts import lasting
from veilog.display.tables import key_values, pair, sentences
from veilog.logs.variants import Variants
from veilog.measures import Comparison
from veilog.measures.durations import FEW, CaseDurations
from veilog.measures.singling_out.words import briefly_in_words
from veilog.privacy.account.guarantee import Guarantee, Strength, up
from veilog.releasing.losses import in_words
from veilog.releasing.meaning import meaning_of
from veilog.releasing.owner.notes import OF_ACCOUNTS
from veilog.releasing.preview import Expected
from veilog.releasing.result import NOISE_ONLY, Release

_STRENGTH: Mapping[Strength, str] = {
    "strong": "green", "good": "green", "moderate": "yellow", "weak": "red", "none in practice": "red",
}  # fmt: skip


_NOISE_ONLY = "By its own answers, the release cannot be distinguished from noise. Exit status 6."
_CONFIDENTIAL = "(Confidential: from the log itself.)"


def strength_style(guarantee: Guarantee) -> str:
    """Return the colour that a guarantee is shown in, by what it is worth."""
    return _STRENGTH[guarantee.strength]


def _has_nominal(guarantee: Guarantee, *, as_published: bool) -> bool:
    """Whether a budget was asked for that is not what is proved; groups of cases have none."""
    return (as_published or not guarantee.proven) and guarantee.nominal_epsilon is not None


def guarantee_panel(guarantee: Guarantee, *, as_published: bool) -> Panel:
    """The guarantee in words, with all that it rests on."""
    lines: list[RenderableType] = [Text(guarantee.in_words(), style=f"bold {_STRENGTH[guarantee.strength]}")]
    meaning = meaning_of(guarantee)
    if meaning is not None:
        lines.append(Text(meaning.in_words(guarantee.unit)))
    if _has_nominal(guarantee, as_published=as_published):
        lines.append(Text(f"nominal (what was asked for): {pair(guarantee.nominal_epsilon, guarantee.nominal_delta)}"))
        lines.append(Text(f"derived (what is proved): {pair(guarantee.epsilon, guarantee.delta)}"))
    for statement in guarantee.statements:
        how = "checked on the release" if statement.checked else "rests on the method, not checked"
        lines.append(Text(f"{statement.model}: {how}. {statement.does_not_protect}", style="yellow"))
    if guarantee.charges:
        lines.append(Text(f"Protects against: telling apart {guarantee.neighbours}."))
        lines.append(Text(f"Noise: {guarantee.numerics}."))
    lines.extend(Text(f"Holds only if: {c.text} ({c.code})", style="yellow") for c in guarantee.conditions)
    charges = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("question", "for", "noise", "epsilon", "delta"):
        charges.add_column(column, style="dim")
    shown = guarantee.charges[:8]
    for c in (charge.plain() for charge in shown):
        charges.add_row(c.question, escape(str(c.purpose)), str(c.mechanism), up(c.epsilon), up(c.delta))
    if len(guarantee.charges) > len(shown):
        charges.add_row(f"... {len(guarantee.charges) - len(shown)} more", "", "", "", "")
    if guarantee.charges:
        lines.append(charges)
    return Panel(Group(*lines), title="guarantee", title_align="left", border_style=_STRENGTH[guarantee.strength])


def expected_view(expected: Expected, cost: Guarantee, more: Sequence[tuple[str, str | Text]] = ()) -> Table:
    """What ``veilog release --dry-run`` prints: what would be guaranteed, what can be expected of it, and whatever
    ``more`` there is to say."""
    g, sizes = cost, expected.sizes
    many = "" if sizes.activities is None else f", {sizes.activities:,} activities"
    rows: list[tuple[str, str | Text]] = [
        ("would cost", Text(_protection(g), style=f"bold {_STRENGTH[g.strength]}")),
        ("tried on", f"{expected.twins} made-up twins of {counted(sizes.cases, 'case')}{many}, "
                     f"{sizes.length:.3g} events each"),
        ("similarity", Text(expected.in_words(), style="bold green" if expected.promising else "bold red")),
    ]  # fmt: skip
    if expected.survivors is not None:
        rows.append(("activities", expected.survivors.in_words()))
    if expected.durations is not None:
        rows.append(("durations", f"their mean is off by a share of about {expected.durations} of the larger mean"))
    rows += [(name, f"about {found} of what a log itself gives") for name, found in expected.purposes]
    if sizes.missing:
        rows.append(("not known", f"{', '.join(sizes.missing)}: say what is public of it for a narrower interval"))
    if expected.owner_only:
        rows.append(("for you", Text("Exact sizes of the log were used: publish nothing of this.", style="magenta")))
    return key_values([*rows, *more, ("asked", "nothing: no question was put to the log, and no budget was spent")])


def release_brief(
    released: Release,
    files: Sequence[str],
    kept: Comparison | None = None,
    account: str = "",
    then: str = "",
    log: str = "LOG",
) -> Table:
    """What ``veilog release`` prints unless more is asked for: a row for each thing that people want to know. ``log``
    is the log, and how it was read, in the words of the command."""
    ends = [("account", account), ("files", "; ".join(files)), ("next", then)]
    return key_values([*_brief(released, kept, log), *(end for end in ends if end[1])])


def _brief(released: Release, kept: Comparison | None, log: str) -> Iterator[tuple[str, str | Text]]:
    g, v = released.guarantee, released.variants
    yield from _losses(released)
    yield "protection", Text(_protection(g), style=f"bold {_STRENGTH[g.strength]}")
    if _has_nominal(g, as_published=released.as_published):
        yield "asked for", f"{pair(g.nominal_epsilon, g.nominal_delta)}; derived: {pair(g.epsilon, g.delta)}"
    if g.proven:
        yield "whom", str(g.protects) + ("" if g.part is None else f" The release is of the {g.part.in_words} alone.")
    yield from _first("holds if", [str(condition.text) for condition in g.conditions], "yellow", brief=True)
    for statement in g.statements:
        yield "instead", f"{statement.holds} {statement.does_not_protect}"
    name = released.method + (" (as published)" if released.as_published else "")
    yield "released", f"{_sizes(v)}, by {name}"
    if kept is not None:
        model = ""
        if kept.fitness is not None and kept.precision is not None:
            model = f" Its model: fitness {kept.fitness:.2f}, precision {kept.precision:.2f}."
        yield "kept", Text(sentences(kept.verdict)[0] + model, style="bold")
        if kept.case_durations is not None:
            yield "durations", _durations(kept.case_durations)
        if kept.singling_out is not None:
            yield "at risk", briefly_in_words(kept.singling_out)
    # Whole: what to do about it is the last thing that a remark says.
    yield from _first("note", _remarks(released), "yellow")
    yield from _first("for you", _for_the_owner(released, log), "magenta")


def _remarks(released: Release) -> list[str]:
    """The remarks but that it is noise, which stands first."""
    return [str(remark) for remark in released.remarks if remark != NOISE_ONLY]


def _losses(released: Release) -> Iterator[tuple[str, Text]]:
    """What stands first: that a release is noise alone, and what it leaves out of the log, which is confidential."""
    if released.noise_only:
        yield "noise only", Text(_NOISE_ONLY, style="bold red")
    for i, loss in enumerate(released.owner_only.losses):
        yield ("" if i else "losses"), Text(f"{in_words(loss)}{'' if i else ' ' + _CONFIDENTIAL}", style="bold magenta")


def _first(name: str, texts: Sequence[str], style: str, *, brief: bool = False) -> Iterator[tuple[str, Text]]:
    """The first of several texts, or its first sentence where that shall be ``brief``, and how much more there is."""
    for text in texts[:1]:
        shown = sentences(text)[0] if brief else text
        rest = f"{len(texts) - 1} more" if len(texts) > 1 else "the rest" if shown != text else ""
        yield name, Text(f"{shown} ({rest}: --details)" if rest else shown, style=style)


def _sizes(variants: Variants) -> str:
    kinds = f"{counted(variants.cases, 'case')}, {counted(len(variants), 'variant')}"
    return f"{kinds}, {counted(variants.events, 'event')}"


def _protection(guarantee: Guarantee) -> str:
    """The guarantee in a sentence."""
    if not guarantee.proven:
        return f"none by differential privacy: {'; '.join(map(str, guarantee.reasons))}"
    given = " if what it assumes is true" if guarantee.conditions else ""
    most = "" if guarantee.holds_up_to is None else f" for a log of up to {counted(guarantee.holds_up_to, 'case')}"
    return f"{guarantee.strength}{most}; {pair(guarantee.epsilon, guarantee.delta)} for one {guarantee.unit}{given}"


def _durations(found: CaseDurations) -> str:
    """How long the cases of both logs last, and of how many released ones that is said."""
    old, new = found.original, found.released
    halves = f"half up to {lasting(new.median)}, of the original {lasting(old.median)}"
    means = f"on average {lasting(new.mean)}, of the original {lasting(old.mean)}"
    few = " (too few to tell how long cases last)" if new.cases < FEW else ""
    return f"of {counted(new.cases, 'released case')}{few}: {halves}; {means}"


def _for_the_owner(released: Release, log: str) -> list[str]:
    """What only the owner of the log is told."""
    found = [f for f in released.owner_only.findings if f.severity != "info"]
    read = [f"Reading the log, {f.rule}: {f.count:,} {f.policy}; veilog validate {log} says more." for f in found]
    notes = (*released.owner_only.warnings, *released.owner_only.notes)
    account = [note for note in notes if note.code in OF_ACCOUNTS]
    return [*(str(note) for note in notes if note not in account), *read, *map(str, account)]


def release_view(released: Release, target: str, log: str = "LOG") -> Group:
    """What ``veilog release`` prints about the release itself, of a log in the words of the command."""
    v = released.variants
    name = released.method + (" (as published)" if released.as_published else "")
    top = key_values(
        [
            ("released", f"{counted(v.cases, 'case')}, {counted(len(v), 'variant')}, {counted(v.events, 'event')}"),
            ("method", name),
        ]
        + [(f"  {key}", value) for key, value in released.parameters.items() if value is not None]
        + ([] if released.declared_length is None else [("declared length", released.declared_length)])
        + [("written to", target), ("seconds", f"{released.owner_only.seconds:.2f}")]
    )
    losses = key_values(found) if (found := list(_losses(released))) else Text()
    remarks = [Text(remark, style="yellow") for remark in _remarks(released)]
    notes = [Text(f"For you only: {note}", style="magenta") for note in _for_the_owner(released, log)]
    return Group(losses, top, guarantee_panel(released.guarantee, as_published=released.as_published), *remarks, *notes)
