"""Sphinx configuration: MyST Markdown, the furo theme."""

from veilog import __version__

project = "veilog"
author = "the veilog authors"
copyright = "the veilog authors, Apache-2.0"  # noqa: A001
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"veilog {__version__}"
