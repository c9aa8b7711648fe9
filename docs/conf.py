"""Sphinx configuration: MyST Markdown, the furo theme."""

import re
from typing import Any

from veilog import __version__

project = "veilog"
author = "the veilog authors"
copyright = "the veilog authors, Apache-2.0"  # noqa: A001
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
_ALIASES = (
    "Number",
    "Progress",
    "Source",
    "Data",
    "Values",
    "Window",
    "Assign",
    "Features",
    "CodeArray",
    "IntArray",
    "npt.ArrayLike",
)
autodoc_type_aliases = {name: name.removeprefix("npt.") for name in _ALIASES}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"veilog {__version__}"


def _signature(
    app: Any, what: str, name: str, thing: object, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Names of types instead of what they stand for; none for classes that come out of functions."""
    if what == "class" and name != "veilog.Domain":
        return "", returned
    return _named(signature), _named(returned)


def _named(text: str | None) -> str | None:
    plain = re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", text or "")
    return re.sub(r"~(?:\w+\.)+", "", plain) or None


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", _signature)
