"""The two tables that the command shows everything in."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure


def key_values(rows: Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Two columns: what, and its value."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in rows:
        table.add_row(key, value if isinstance(value, Text) else escape(figure(value)))
    return table


def listing(*columns: str, right: Collection[str] = (), dim: Collection[str] = (), title: str | None = None) -> Table:
    """A table without lines: its columns, those whose numbers stand to the right, and those that are dim."""
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for name in columns:
        style = "dim" if name in dim else ""
        table.add_column(name, justify="right" if name in right else "left", style=style)
    return table
