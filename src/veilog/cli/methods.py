"""The command that describes the methods. It loads them, and nothing of a release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure
from veilog.cli.shared.log_input import Output
from veilog.cli.shared.options import Json
from veilog.cli.shared.tables import key_values, plain_table
from veilog.methods import METHODS, Method, method_named


def methods(
    name: Annotated[str | None, Parameter(help="Method to describe in full, with its parameters.")] = None,
    *,
    json: Json = None,
) -> None:
    """List the methods with their guarantees; with a name, describe one in full."""
    out = Output(json)
    if name is not None:
        found = method_named(name)
        out.json(found.to_json())
        out.show(_method_view(found))
        return
    out.json([method.to_json() for method in METHODS.values()])
    out.show(_methods_table(METHODS.values()))
    out.show(Text("For one method with its parameters: veilog methods NAME.", style="dim"))


def _methods_table(methods: Iterable[Method]) -> Table:
    """Return a line for each method: its releases, and its guarantee in both modes."""
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("method", no_wrap=True, style="bold")
    table.add_column("releases", no_wrap=True)
    table.add_column("certified", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("as published", no_wrap=True, overflow="ellipsis", ratio=1)
    for m in methods:
        table.add_row(m.name, str(m.releases), escape(m.guarantee), escape(m.as_published))
    return table


def _method_view(method: Method) -> Group:
    """Return one method in full: its guarantees, its paper and its parameters."""
    rows = [
        ("releases", str(method.releases)),
        ("certified", method.guarantee),
        ("as published", method.as_published),
        ("paper", method.paper or "none: our own method"),
        ("added by", method.package or ""),
    ]
    parameters = plain_table("-p", "by default", "")
    for p in method.parameters:
        parameters.add_row(Text(p.name, style="bold"), escape(figure(p.default)), escape(p.what))
    top = key_values([row for row in rows if row[1]], title=escape(method.name))
    return Group(top, Text(""), parameters if method.parameters else Text("It has no parameters."))
