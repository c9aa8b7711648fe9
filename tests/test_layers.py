"""Data flows one way: a module imports its own layer and those before it."""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from veilog import Ledger, write
from veilog.logs.synthetic.hospital import hospital

SOURCE = Path(__file__).parents[1] / "src" / "veilog"

LAYERS = (
    {
        "_version",
        "errors",
        "messages",
        "_counting",
        "_files",
        "_language",
        "_notebook",
        "_places",
        "_plain",
        "_plugins",
        "_process",
        "_svg",
        "_tables",
        "_typing",
    },
    {"logs"},
    {"rules"},
    {"mining"},
    {"modelfile"},
    {"privacy"},
    {"ledger"},
    {"methods"},
    {"measures"},
    {"releasing"},
    {"audits"},
    {"training"},
    {"charts"},
    {"experiments"},
    {"report"},
    {"testing"},
    {"web"},
    {"__init__"},
    {"cli"},
    {"__main__"},
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(SOURCE.rglob("*.py"))
METHODS = sorted((SOURCE / "methods").rglob("*.py"))
KERNEL = sorted((SOURCE / "privacy").rglob("*.py"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file, parsed once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def test_a_layer_stands_once() -> None:
    assert len(RANK) == sum(map(len, LAYERS))


def imported(path: Path) -> dict[str, int]:
    """Return the parts of veilog that a file imports anywhere, each with a line."""
    parts = {}
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the layer"
            names = [node.module or ""]
            if node.module == "veilog":
                names = [f"veilog.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "veilog" or name.startswith("veilog."):
                part = name.partition(".")[2].split(".")[0] or "__init__"
                parts[part if part in RANK else "__init__"] = node.lineno
    return parts


@pytest.mark.slow
def test_a_module_imports_only_its_own_layer_and_those_before() -> None:
    for path in MODULES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        assert own in RANK, f"{own} has no place in the layers"
        later = [f"{path}:{line} imports {part}" for part, line in imported(path).items() if RANK[part] > RANK[own]]
        assert later == []


def test_methods_reach_raw_data_through_questions_only() -> None:
    """No method touches the curator's private parts or draws its own randomness."""
    for path in METHODS:
        for node in nodes(path):
            if isinstance(node, ast.Attribute):
                private = node.attr.startswith("_") and not node.attr.startswith("__")
                own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
                assert not private or own, f"{path}:{node.lineno} uses {node.attr}"
                assert node.attr not in {"default_rng", "urandom"}, f"{path}:{node.lineno} draws {node.attr}"


DATA_TYPES = {
    "veilog.logs.eventlog": {
        "ACTIVITY",
        "CASE_INDEX",
        "EVENT_INDEX",
        "NESTED",
        "TIMESTAMP",
        "EventLog",
        "as_dictionary",
        "encode_texts",
    },
    "veilog.logs.variants": {"Sequences", "Variants"},
    "veilog.logs.storage.stored_log": {"StoredLog"},
    "veilog.messages": {"Message", "as_message"},
}
"""Parts of event logs and messages that the kernel may use: data types, and of one of them the names of its columns and
how the texts of one are listed, each once."""


@pytest.mark.slow
def test_the_kernel_imports_errors_and_three_data_types() -> None:
    for path in KERNEL:
        assert not [node for node in nodes(path) if isinstance(node, ast.Import) and "veilog" in ast.dump(node)], path
        for node in nodes(path):
            if not isinstance(node, ast.ImportFrom):
                continue
            module = node.module or ""
            if module.split(".")[0] != "veilog" or module == "veilog.errors" or module.startswith("veilog.privacy"):
                continue
            names = {alias.name for alias in node.names}
            place = f"{path}:{node.lineno}"
            assert names <= DATA_TYPES.get(module, set()), f"{place} imports {sorted(names)} from {module}"


@pytest.mark.slow
def test_the_kernel_waits_for_no_reader_of_logs() -> None:
    """The kernel imports only what an event log needs; stored logs are a type alone."""
    code = "import sys, veilog.privacy.curator; print(*(m for m in sys.modules if m.split('.')[0] == 'veilog'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {name for name in done.stdout.split() if not name.startswith("veilog.privacy")}
    below = {f"veilog.logs.{name}" for name in ("eventlog", "variants", "findings", "metadata")}
    plain = {"veilog", "veilog._version", "veilog._plain", "veilog._typing", "veilog.errors", "veilog.logs"}
    plain |= {"veilog._counting", "veilog.messages", "veilog._language", "veilog._language.catalogue"}
    assert others == plain | below


def test_only_the_account_enters_charges() -> None:
    for path in KERNEL:
        if path.name == "account.py":
            continue
        for node in nodes(path):
            assert not (isinstance(node, ast.Attribute) and node.attr in ("_charges", "_enter")), (
                f"{path}:{node.lineno}"
            )
            made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Charge"
            assert not made or path.name == "guarantee.py", f"{path}:{node.lineno} makes a charge"


def test_questions_draw_from_what_they_charged() -> None:
    """Queries draw by their charged mechanisms, outside of which no sampler is called.

    The exceptions are bins of which only survivors are drawn, and the steps of a training, whose plan was charged.
    """
    for path in KERNEL:
        if path.parent.name == "mechanisms":
            continue
        samplers = {"discrete_laplace", "tsgd_noise", "discrete_gaussian", "geometric", "gaps"}
        allowed = {"histograms.py": {"geometric", "gaps"}, "gradients.py": {"discrete_gaussian"}}.get(path.name, set())
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                assert name not in samplers - allowed, f"{path}:{node.lineno} calls {name}"


@pytest.mark.slow
@pytest.mark.parametrize("start", ["import veilog", "from veilog.cli import main; main(['--version'])"])
def test_a_start_waits_for_nothing_that_it_does_not_use(start: str) -> None:
    """A start imports no module of numbers or tables before it is needed."""
    code = f"import sys; {start}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "pyarrow", "duckdb", "ot", "jinja2", "dp_accounting", "pandas", "veilog.privacy"}
    assert not heavy & set(done.stdout.split())


_COMPUTES = {"scipy", "ot", "rapidfuzz", "dp_accounting", "jinja2", "pandas"}
_COMPUTES |= {"veilog.measures", "veilog.audits", "veilog.report"}
"""Modules that no command on a log or an account needs."""
_RELEASES = {"veilog.methods", "veilog.releasing", "veilog.ledger", "duckdb"}
_RARE = {"veilog._process", "multiprocessing", "zipfile", "email", "hashlib", "difflib", "gettext", "rich.progress"}
_RARE |= {"veilog.logs.storage.stored_log", "veilog.logs.engines.engine"}
"""Modules for several processes, names that do not exist, add-ons, zips, and logs larger than memory."""
_READS = 50
"""Largest number of veilog's modules that reading a log may load."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "spared"),
    [
        (["info", "log.csv"], _COMPUTES | _RELEASES | _RARE),
        (["info", "log.parquet"], _COMPUTES | _RELEASES | _RARE),
        (["info", "log.xes"], _COMPUTES | _RELEASES | _RARE),
        (["validate", "log.csv"], _COMPUTES | _RELEASES | _RARE),
        (["map", "log.csv"], _COMPUTES | _RELEASES - {"duckdb"}),
        (["convert", "log.csv", "log.xes.gz"], _COMPUTES | _RELEASES),
        (["methods"], _COMPUTES - {"rapidfuzz"} | {"veilog.releasing", "veilog.ledger", "duckdb"}),
        (["ledger", "show", "log.ledger"], _COMPUTES | {"veilog.methods", "veilog.releasing.request", "duckdb"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_short_command_loads_nothing_that_it_does_not_use(
    command: list[str], spared: set[str], tmp_path: Path
) -> None:
    """A short command imports no module that it does not use, in any format.

    Arrow would load pandas.
    """
    log = hospital(20, seed=1)
    for suffix in ("csv", "parquet", "xes"):
        write(log, tmp_path / f"log.{suffix}", lossy=True)
    Ledger.open(tmp_path / "log.ledger", create=True).enter(log)
    code = f"import sys; from veilog.cli import main; status = main({command!r}); print(status, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    status, *loaded = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert not spared & set(loaded)
    assert _RARE - spared or sum(name.partition(".")[0] == "veilog" for name in loaded) <= _READS


@pytest.mark.slow
@pytest.mark.parametrize("command", [["--version"], ["--help"], ["info", "log.csv"], ["info", "none.csv"]])
def test_a_command_ends_with_its_status_and_whole_output(command: list[str], tmp_path: Path) -> None:
    """A process that ends at once has written all that another writes."""
    write(hospital(20, seed=1), tmp_path / "log.csv", lossy=True)
    code = f"import sys; from veilog.cli import main; sys.exit(main({command!r}))"
    runs = [
        subprocess.run([sys.executable, *start], capture_output=True, cwd=tmp_path, check=False)
        for start in (["-c", code], ["-m", "veilog", *command])
    ]
    assert len({(run.returncode, run.stdout, run.stderr) for run in runs}) == 1


@pytest.mark.nightly
def test_tests_do_not_hang_on_compiled_files_of_other_packages(tmp_path: Path) -> None:
    """Tests run in a copied environment, in which nothing is compiled yet."""
    one = str(SOURCE.parents[1] / "tests" / "methods" / "test_travas.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "as_published_derives", one]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_every_public_name_is_there_and_no_other() -> None:
    import veilog

    assert all(getattr(veilog, name) is not None for name in veilog.__all__)
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"report"}
    assert not folders & set(veilog.__all__), "importing a part of the folder would put it in the place of the name"
    assert set(veilog.__all__) <= set(dir(veilog))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        veilog.nothing  # noqa: B018


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(("veilog", *(parts[:-1] if parts[-1] == "__init__" else parts)))


@functools.cache
def _imports() -> dict[str, set[str]]:
    """Return the imports of every module, anywhere in it."""
    modules = {_module(path): path for path in SOURCE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in modules.items():
        found[module] = set()
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "veilog":
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                found[module] |= {name if name in modules else node.module for name in names}
            elif isinstance(node, ast.Import):
                found[module] |= {alias.name for alias in node.names if alias.name in modules}
    return found


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {module: set(names) for module, names in _imports().items() if module != "veilog"}
    while True:
        free = {module for module, names in left.items() if not names & left.keys() - {module}}
        if not free:
            break
        left = {module: names for module, names in left.items() if module not in free}
    assert not left, f"a circle among {sorted(left)}"


ROOMS = {
    "logs.tables": (*("times", "cells", "events", "table_reader", "csv", "excel", "frames", "parquet", "wide"),),
    "releasing": (
        *(
            "meaning",
            "checks",
            "losses",
            "account_notes",
            "spool",
            "answers",
            "result",
            "prior",
            "keywords",
            "refusals",
            "request",
            "owner",
            "run",
        ),
        *("owner", "run", "model", "preview", "twin", "suggest"),
    ),
    "web": ("jobs", "work", "pages", "access", "owner", "app", "server"),
    "cli": (
        *("shared", "methods", "ledger", "logs", "audit", "compare", "report", "dossier", "risk"),
        *("confirmation", "model", "preview", "release", "suggest", "experiment", "demo", "serve", "completion"),
    ),
}
"""Contents of these folders, each before its importers."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ROOMS)
def test_a_room_imports_those_before_it_only(folder: str) -> None:
    rank = {name: place for place, name in enumerate(ROOMS[folder])}
    inside = f"veilog.{folder}."
    for module, names in _imports().items():
        for name in names if module.startswith(inside) else ():
            if name.startswith(inside):
                own, other = (each.removeprefix(inside).split(".")[0] for each in (module, name))
                assert rank[other] <= rank[own], f"{module} imports {name}"


def test_a_folder_fits_one_glance_and_says_what_it_holds() -> None:
    for folder in sorted({path.parent for path in MODULES}):
        assert len(list(folder.glob("*.py"))) <= 20, f"{folder}: what belongs together in it can have a room"
        (module,) = (node for node in nodes(folder / "__init__.py") if isinstance(node, ast.Module))
        assert ast.get_docstring(module), folder


LARGEST = 800
"""Most lines of a module."""


def test_no_module_is_longer_than_one_subject_needs() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LARGEST} == {}


def test_no_public_class_has_a_name_in_two_modules() -> None:
    places: dict[str, int] = {}
    for path in MODULES:
        (module,) = (node for node in nodes(path) if isinstance(node, ast.Module))
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name] = places.get(node.name, 0) + 1
    assert [name for name, count in places.items() if count > 1] == []
