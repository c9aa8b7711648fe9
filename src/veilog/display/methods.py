"""The methods."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure
from veilog.display.tables import key_values
from veilog.methods import Method


def methods_table(methods: Iterable[Method]) -> Table:
    """A line for each method: what it releases, and what is derived in both faces."""
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("method", no_wrap=True, style="bold")
    table.add_column("releases", no_wrap=True)
    table.add_column("certified", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("as published", no_wrap=True, overflow="ellipsis", ratio=1)
    for m in methods:
        table.add_row(m.name, str(m.releases), escape(m.guarantee), escape(m.as_published))
    return table


def method_view(method: Method) -> Group:
    """One method in full: its guarantees, its paper and its parameters."""
    rows = [
        ("releases", str(method.releases)),
        ("certified", method.guarantee),
        ("as published", method.as_published),
        ("paper", method.paper or "none: it is our own"),
        ("added by", method.package or ""),
    ]
    parameters = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("-p", "by default", ""):
        parameters.add_column(column)
    for p in method.parameters:
        parameters.add_row(Text(p.name, style="bold"), escape(figure(p.default)), escape(p.what))
    top = key_values([row for row in rows if row[1]], title=escape(method.name))
    return Group(top, Text(""), parameters if method.parameters else Text("It has no parameters."))
