"""Data flows one way: a module imports its own layer and the layers before it, never a later one."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "veilog"

LAYERS = (
    {"_version", "errors", "plain", "threads", "_plugins"},
    {"logs"},
    {"modelfile"},
    {"privacy"},
    {"ledger"},
    {"methods"},
    {"measures"},
    {"releasing"},
    {"audits"},
    {"training"},
    {"charts"},
    {"display"},
    {"experiments"},
    {"report"},
    {"testing"},
    {"demo"},
    {"web"},
    {"__init__"},
    {"cli"},
    {"__main__"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imported(path: Path) -> set[str]:
    """The parts of veilog that a file imports, also inside functions and under TYPE_CHECKING."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            names = [node.module or ""]
            if node.module == "veilog":
                names = [f"veilog.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "veilog" or name.startswith("veilog."):
                part = name.partition(".")[2].split(".")[0] or "__init__"
                parts.add(part if part in RANK else "__init__")
    return parts


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_its_own_layer_and_those_before(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert own in RANK, f"{own} has no place in the layers"
    later = {part for part in imported(path) if RANK[part] > RANK[own]}
    assert not later, f"{own} imports {sorted(later)}"


@pytest.mark.parametrize("path", sorted((SOURCE / "methods").rglob("*.py")), ids=lambda p: p.name)
def test_methods_reach_raw_data_through_questions_only(path: Path) -> None:
    """No method touches a private attribute of the curator or draws randomness of its own."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            assert not private or own, f"{path.name}:{node.lineno} uses {node.attr}"
            assert node.attr not in {"default_rng", "urandom"}, f"{path.name}:{node.lineno} draws {node.attr}"


@pytest.mark.parametrize("start", ["import veilog", "from veilog.cli import main; main(['--version'])"])
def test_a_start_waits_for_nothing_that_it_does_not_use(start: str) -> None:
    """Which modules are imported, not how long that takes: numbers and tables come when they are asked for."""
    code = f"import sys; {start}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pyarrow", "duckdb", "ot", "jinja2", "dp_accounting", "pandas", "veilog.privacy"}
    assert not heavy & set(done.stdout.split())


def test_every_public_name_is_there_and_no_other() -> None:
    import veilog

    assert all(getattr(veilog, name) is not None for name in veilog.__all__)
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"report"}
    assert not folders & set(veilog.__all__), "importing a part of the folder would put it in the place of the name"
    assert set(veilog.__all__) <= set(dir(veilog))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        veilog.nothing  # noqa: B018
