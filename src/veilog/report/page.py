"""From facts to one HTML page, with its template, style and one small script."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from veilog._language import current, format_date, format_number, gettext, ngettext, pgettext
from veilog.charts import lasting
from veilog.measures import MEASURES, Comparison, verdict_of
from veilog.measures.disclosure.measure import EXPLAINED
from veilog.messages import Message
from veilog.privacy.account.guarantee import STRENGTHS
from veilog.releasing.checks import meaning_of
from veilog.releasing.result import NOISE_ONLY
from veilog.report import words
from veilog.report.comparison import attacks_shown, knowledge_text, rate_in_words, unique
from veilog.report.decision import CONFIRMED, MARKS
from veilog.report.explorer import COLOURS, clean, short, split_text
from veilog.report.facts import Facts
from veilog.report.flow_map import END, START
from veilog.report.words import bind_numbers, figure, localise, share_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.nodes import EvalContext


def render_page(facts: Facts) -> str:
    """Return the page. Its own security policy forbids it to load anything."""
    script = static("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    inside = facts.inside
    chart = None
    if inside is not None and inside.chart is not None:
        chart = base64.b64encode(inside.chart.encode()).decode()
    comparison = None if inside is None else inside.comparison
    return (
        environment()
        .get_template("page.html")
        .render(
            facts=facts,
            language=current(),
            told=facts.told,
            guarantee=facts.told.guarantee,
            inside=inside,
            verdict="" if comparison is None else verdict_of(comparison),
            kept=[] if comparison is None else utility_lines(comparison),
            attacks=() if comparison is None else attacks_shown(*comparison.attacks),
            risk_words=EXPLAINED,
            singled_explained=str(Message("singling-out-explained")),
            budget=words.title_of_budget(facts.told.guarantee),
            tile=words.title_of_budget(facts.told.guarantee, digits=3),
            chart=chart,
            script=Markup(script),
            style=Markup(style()),
            policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
        )
    )


def utility_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return title, value and meaning of the numbers of utility that a page shows.

    They are the clearest of the measures, and all that other packages add.
    """
    lines = []
    for name, found in comparison.results.items():
        by = comparison.added.get(name, "")
        for quantity in MEASURES[name].quantities:
            if quantity.plain is None and not by:
                continue
            title, meaning = map(gettext, quantity.plain or (quantity.title, quantity.says(found.value)))
            if name == "relative_log_similarity":
                meaning += f" ({comparison.sizes}.)"
            form = _share if quantity.form == "share" else lasting if quantity.form == "hours" else _number
            number = quantity.number(found.value)
            if number is None and found.interval is not None:
                low, high = (form(end) for end in found.interval)
                value = gettext("{low} to {high}", low=low, high=high)
            else:
                value = _number(None) if number is None else form(number)
            lines.append(
                (
                    title,
                    value,
                    gettext("{meaning} (added by {package})", meaning=meaning, package=by) if by else meaning,
                )
            )
    return lines


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment that reads and fills the templates of pages."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context, select_autoescape

    made = Environment(
        loader=PackageLoader("veilog.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=pass_eval_context(_bind_numbers),
    )
    return furnish(made)


def furnish(environment: Environment) -> Environment:
    """Add what the templates here use, so that other pages can draw the same."""
    environment.filters.update(
        n=_count,
        share=_share,
        number=_number,
        clean=clean,
        short=short,
        in_two=split_text,
        bar=_bar,
        rate=rate_in_words,
        in_points=words.points,
        capital=words.capital,
        up=figure,
        tied=bind_numbers,
        unique=unique,
        dated=format_date,
        known_activities=knowledge_text,
        stated=localise,
    )
    environment.globals.update(
        START=START,
        END=END,
        NOISE_ONLY=NOISE_ONLY,
        COLOURS=COLOURS,
        TONES=words.TONES,
        GRADES=words.GRADES,
        STRENGTHS=STRENGTHS,
        MARKS=MARKS,
        CONFIRMED=CONFIRMED,
        _=_translate,
        _p=pgettext,
        ngettext=_translate_count,
        by_delta=words.delta_sentence,
        chances=words.chances,
        factor=words.factor,
        headline=words.headline,
        meaning_of=meaning_of,
        percent_up=words.percent_up,
        share_of=share_of,
        strength_in_words=words.strength_in_words,
    )
    return environment


SHARED = Path(__file__).parent / "shared"
"""Folder of the style that reports and the pages of ``veilog serve`` share."""


def style() -> str:
    """Return the style of a report."""
    return (SHARED / "pictures.css").read_text(encoding="utf-8") + static("style.css")


@lru_cache(maxsize=4)
def static(name: str) -> str:
    """Return a style or a script of the pages."""
    return resources.files("veilog.report").joinpath("templates", name).read_text(encoding="utf-8")


def _bind_numbers(context: EvalContext, value: object) -> object:
    """Return a value for a page, without line breaks inside its numbers."""
    if context.autoescape and isinstance(value, str):
        return Markup(bind_numbers(value)) if isinstance(value, Markup) else bind_numbers(value)
    return value


def _translate(text: str, /, **values: str | int) -> Markup:
    """Return a template's sentence, translated: values are text, the rest markup."""
    return Markup(gettext(text, **_escape_values(values)))


def _translate_count(one: str, many: str, n: int, /, **values: str | int) -> Markup:
    """Return the same in the form that fits a number."""
    return Markup(ngettext(one, many, n, **_escape_values(values)))


def _escape_values(values: Mapping[str, str | int]) -> dict[str, str | int]:
    return {name: value if isinstance(value, int) else str(escape(value)) for name, value in values.items()}


def _count(value: int) -> str:
    return format_number(f"{value:,}")


def _share(value: float | None) -> str:
    """Return a share for people; one above 0 never looks like 0."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return f"< {share_of('0.1')}"
    if value in (0, 1):
        return share_of(f"{100 * value:.0f}")
    return share_of(f"{100 * value:.1f}" if value < 0.9995 else "99.9")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return format_number(f"{value:,}")
    return format_number(f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}")


def _bar(value: float | None, most: float) -> str:
    """Return the length of a bar in percent; any value above 0 shows."""
    if not value or most <= 0:
        return "0"
    return f"{max(0.6, min(100.0, 100 * math.sqrt(value / most))):.1f}"
