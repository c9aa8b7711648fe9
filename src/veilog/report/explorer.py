"""The most frequent variants as rows of chevrons, alone or with the original's."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from veilog._language import gettext
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage

COLOURS = 16
"""Number of colours in the page's style; rarer activities share the last one."""
ROWS = 60
_LONGEST_ROW = 24
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_LONGEST_SEARCH = 1_500


@dataclass(frozen=True)
class Chevron:
    """One activity of a variant, with its number of repetitions in a row."""

    text: str
    title: str
    colour: int
    times: int


@dataclass(frozen=True)
class ExplorerRow:
    """One variant with its numbers of cases; None for an original that is not shown."""

    chevrons: tuple[Chevron, ...]
    left_out: int
    """Number of activities at the end for which there is no room."""
    released: int
    original: int | None
    released_share: float
    original_share: float | None
    search: str


@dataclass(frozen=True)
class Explorer:
    """The rows, and their share of the log."""

    rows: tuple[ExplorerRow, ...]
    variants: int
    """Number of variants in all."""
    covered: float
    """Share of the released cases that the rows stand for."""
    legend: tuple[Chevron, ...]
    more_activities: int
    """Number of activities that the legend leaves out."""


def clean(said: str | Message | OwnerMessage) -> str:
    """Return a text without control or direction marks, or halves of characters.

    It cannot disturb what stands around it.
    """
    text = str(said)
    if text.isascii() and text.isprintable():
        return text
    return "".join("\ufffd" if c in _DIRECTIONS or unicodedata.category(c) in _UNSEEN else c for c in text)


def short(said: str | Message, most: int) -> str:
    """Return the text, or that of a message, cut if it is longer."""
    text = clean(str(said)[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def split_text(text: str, most: int = 20) -> tuple[str, ...]:
    """Return the text in one line or two of so many letters.

    A longer text keeps both ends, by which names differ.
    """
    text = short(text, 200)
    if len(text) <= most:
        return (text,)
    space = text[: most + 1].rfind(" ")
    if space > 0 and len(text) - space - 1 <= most:
        return text[:space], text[space + 1 :]
    first, rest = text[:most].rstrip(), text[most:].lstrip()
    return first, rest if len(rest) <= most else "…" + rest[1 - most :].lstrip()


def explorer(released: Variants, original: Variants | None = None, whole: Variants | None = None) -> Explorer:
    """Return the most frequent variants of a release, and of the original if given.

    The most frequent come first. If the original is a subset of the ``whole`` log, activities keep their colours there.
    """
    sequences = [released.sequences[i] for i in released.by_frequency()[:ROWS].tolist()]
    if original is not None:
        sequences += [original.sequences[i] for i in original.by_frequency()[: ROWS // 2].tolist()]
    wanted = dict.fromkeys(sequences)
    after = _counts(released, wanted)
    before = {} if original is None else _counts(original, wanted)
    colours = _colours(released, original if whole is None else whole)
    n, m = max(1, released.cases), 1 if original is None else max(1, original.cases)

    def weight(sequence: tuple[str, ...]) -> float:
        return max(after.get(sequence, 0) / n, before.get(sequence, 0) / m)

    rows = [
        _row(
            sequence,
            colours,
            after.get(sequence, 0),
            None if original is None else before.get(sequence, 0),
            (n, m),
        )
        for sequence in sorted(wanted, key=lambda s: (-weight(s), s))
    ]
    covered = sum(after.values()) / n
    names = [name for name in colours if name in {*released.labels, *(() if original is None else original.labels)}]
    return Explorer(
        rows=tuple(rows),
        variants=len(released),
        covered=covered,
        legend=tuple(_chevron(name, 1, colours, 60) for name in names[:30]),
        more_activities=max(0, len(names) - 30),
    )


def _counts(variants: Variants, wanted: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Return the cases of these variants, without those that do not occur."""
    places = {label: code for code, label in enumerate(variants.labels)}
    codes = {tuple(places.get(label, -1) for label in sequence): sequence for sequence in wanted}
    found = {}
    lengths = {len(key) for key in codes}
    for i in np.flatnonzero(np.isin(variants.lengths, sorted(lengths))).tolist():
        row = tuple(variants.codes[variants.offsets[i] : variants.offsets[i + 1]].tolist())
        if row in codes:
            found[codes[row]] = int(variants.counts[i])
    return found


def _colours(released: Variants, original: Variants | None) -> dict[str, int]:
    """Return a colour for each activity, in the order of the original's frequencies.

    They are the colours of the original's own page. The release's own activities come after these.
    """
    colours: dict[str, int] = {}
    for log in (original, released):
        if log is None:
            continue
        weights = np.repeat(log.counts, log.lengths)
        counts = np.bincount(log.codes, weights=weights, minlength=len(log.labels))
        for code in np.argsort(-counts, kind="stable").tolist():
            colours.setdefault(log.labels[code], min(len(colours), COLOURS - 1))
    return colours


def _row(
    sequence: tuple[str, ...], colours: dict[str, int], released: int, original: int | None, sizes: tuple[int, int]
) -> ExplorerRow:
    runs = [(name, len(list(same))) for name, same in itertools.groupby(sequence)]
    return ExplorerRow(
        chevrons=tuple(_chevron(name, times, colours, 32) for name, times in runs[:_LONGEST_ROW]),
        left_out=sum(times for _, times in runs[_LONGEST_ROW:]),
        released=released,
        original=original,
        released_share=released / sizes[0],
        original_share=None if original is None else original / sizes[1],
        search=_search_text(sequence),
    )


def _search_text(sequence: Sequence[str]) -> str:
    return clean(" > ".join(name[:200] for name in sequence[:100])[:_LONGEST_SEARCH]).lower()


def _chevron(name: str, times: int, colours: dict[str, int], most: int) -> Chevron:
    return Chevron(short(name, most) or gettext("(no name)"), short(name, 200), colours[name], times)
