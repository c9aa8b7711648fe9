"""Which version of the code made a cell: a digest of the sources that its values depend on."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

import veilog.errors
from veilog.experiments.measuring import added_columns
from veilog.methods import METHODS

__all__ = ["file_digest", "version_of"]

_ROOT = Path(veilog.errors.__file__).parent
_MEASURING = _ROOT / "experiments" / "measuring.py"


def version_of(method: str, sources: Iterable[str], measured_by: Callable[..., object], extras: bool) -> str:
    """Digest of the method's module and of ``sources``, with all modules of veilog that they import, and of the
    function that measures a cell with what it shares with others (``measuring.py``).

    How tables and plots are made is not in it.

    Measures that other packages add are in it by the versions of these packages. With ``extras`` also whether pm4py and
    scikit-learn are installed, without which values would be missing.
    """
    roots = {METHODS[method].run.__module__} if method else set()
    digest = hashlib.sha256()
    for path in _closure(tuple(sorted(roots | set(sources)))):
        digest.update(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes() + b"\0")
    digest.update(inspect.getsource(measured_by).encode() + _MEASURING.read_bytes())
    digest.update(" ".join(added_columns().values()).encode())
    if extras:
        there = [name for name in ("pm4py", "sklearn") if importlib.util.find_spec(name) is not None]
        digest.update(" ".join(there).encode())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=64)
def _closure(modules: tuple[str, ...]) -> tuple[Path, ...]:
    """The files of these modules and of all that they import from veilog, also inside functions."""
    found: set[Path] = set()
    waiting = [path for module in modules if (path := _file(module)) is not None]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            waiting += [file for name in names if (file := _file(name)) is not None]
    return tuple(sorted(found))


def _file(module: str) -> Path | None:
    """Where the source of a module of veilog is; None for others, and for the public face, which imports all."""
    first, *parts = module.split(".")
    if first != "veilog" or not parts:
        return None
    for path in (_ROOT.joinpath(*parts).with_suffix(".py"), _ROOT.joinpath(*parts, "__init__.py")):
        if path.is_file():
            return path
    return None


def file_digest(path: Path) -> str:
    """Digest of a log, so that another log under the same name is another cell."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
