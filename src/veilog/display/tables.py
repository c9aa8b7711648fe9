"""Two columns, and how a value is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure
from veilog.privacy.account.guarantee import up


def key_values(rows: Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Two columns: what, and its value."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in rows:
        table.add_row(key, value if isinstance(value, Text) else escape(figure(value)))
    return table


def pair(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "none"
    return f"epsilon = {up(epsilon)}" + (f", delta = {up(delta)}" if delta else "")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; one ends before a capital, a digit or a quoted command."""
    return re.split(r"(?<!e[.]g[.])(?<!i[.]e[.])(?<=[.!?]) (?=[A-Z0-9`])", text)
