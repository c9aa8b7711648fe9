"""What made a number: a digest of the sources that it depends on, of its log, and the machine."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import platform
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeGuard

import veilog.errors
from veilog._process import machine_memory
from veilog.experiments.measuring import added_columns
from veilog.methods import METHODS

__all__ = ["code_of", "file_digest", "machine", "version_of"]

_ROOT = Path(veilog.errors.__file__).parent
_NO_NUMBERS = ("experiments", "_language")
_MEASURING = _ROOT / "experiments" / "measuring.py"


def version_of(method: str, sources: Iterable[str], measured_by: Callable[..., object], extras: bool) -> str:
    """Return a digest of the method's module and of ``sources``, with all modules of veilog that they import, and of
    the function that measures a cell: with what experiments share (``measuring.py``), or, where it is a benchmark's,
    with its file and all that this imports.

    How tables and plots of experiments are made is not in it, nor is the harness, nor the languages that words are
    said in; nor are docstrings and comments, nor where a module is and how others get at it.

    Measures that other packages add are in it by the versions of these packages. With ``extras`` also whether
    scikit-learn is installed, without which values would be missing.
    """
    roots = {METHODS[method].run.__module__} if method else set()
    own = Path(inspect.getfile(measured_by))
    outside = () if own.is_relative_to(_ROOT) else (own,)
    digest = hashlib.sha256()
    closure = _closure(tuple(sorted(roots | set(sources))), outside)
    for code in sorted(filter(None, (code_of(path.read_text()) for path in closure))):
        digest.update(f"{code}\0".encode())
    digest.update(f"{inspect.getsource(measured_by)}{code_of(_MEASURING.read_text())}".encode())
    digest.update(" ".join(added_columns().values()).encode())
    if extras:
        digest.update(b"sklearn" if importlib.util.find_spec("sklearn") is not None else b"")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1024)
def code_of(text: str) -> str:
    """Return the lines of a source that can change a number: without docstrings, comments of their own, empty lines,
    imports (what is imported is in the digest itself) and the list of public names."""
    words: set[int] = set()
    kept: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if _changes_no_number(node):
            words.update(_lines(node))
        elif isinstance(node, ast.Constant | ast.JoinedStr):  # a line that begins with # may be in a long string
            kept.update(_lines(node)[1:])
    lines = enumerate(text.splitlines(), start=1)
    return "\n".join(
        line
        for n, line in lines
        if n not in words and (n in kept or (line.strip() and not line.lstrip().startswith("#")))
    )


def _changes_no_number(node: ast.AST) -> TypeGuard[ast.stmt]:
    match node:
        case ast.Expr(ast.Constant(str())) | ast.Import() | ast.ImportFrom() | ast.Assign([ast.Name("__all__")]):
            return True
    return False


def _lines(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@lru_cache(maxsize=64)
def _closure(modules: tuple[str, ...], files: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """The files of these modules, these files, and all that they import from veilog, also inside functions. A file
    outside veilog also has those beside it."""
    found: set[Path] = set()
    waiting = [*files, *(path for module in modules if (path := _file(module)) is not None)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        beside = None if path.is_relative_to(_ROOT) else path.parent
        waiting += [file for name in _imported(path.read_bytes()) if (file := _file(name, beside)) is not None]
    return tuple(sorted(found))


@lru_cache(maxsize=1024)
def _imported(source: bytes) -> tuple[str, ...]:
    """The names of what a source imports that may be modules."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _file(module: str, beside: Path | None = None) -> Path | None:
    """Where the source of a module of veilog is, or of one ``beside`` a benchmark. None for others, for what changes no
    number, and for the public face, which imports all."""
    first, *parts = module.split(".")
    if beside is not None and not parts and (beside / f"{first}.py").is_file():
        return beside / f"{first}.py"
    if first != "veilog" or not parts or parts[0] in _NO_NUMBERS:
        return None
    for path in (_ROOT.joinpath(*parts).with_suffix(".py"), _ROOT.joinpath(*parts, "__init__.py")):
        if path.is_file():
            return path
    return None


@lru_cache(maxsize=1)
def machine() -> str:
    """The machine in words, as far as it says: processors, memory, Python and numpy."""
    whole = machine_memory()
    memory = [f"{whole / 2**30:.0f} GiB"] if whole else []
    parts = [f"{os.cpu_count()} cores {platform.machine()}", *memory, platform.system()]
    return ", ".join([*parts, f"Python {platform.python_version()}", f"numpy {version('numpy')}"])


def file_digest(path: Path) -> str:
    """Digest of a log, so that another log under the same name is another cell."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
