"""A method of another package is known everywhere, and a broken one harms none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the example add-on and one that cannot be loaded."""
    folder = tmp_path_factory.mktemp("packages")
    quietly = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")
    source = ROOT / "examples" / "plugin"
    subprocess.run([sys.executable, "-m", "pip", "install", *quietly, "--target", folder, source], check=True)
    broken = folder / "broken_add_on-2.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-add-on\nVersion: 2.0\n")
    (broken / "entry_points.txt").write_text("[veilog.methods]\nbroken = no_such_module:METHOD\n")
    return folder


def beside(installed: Path) -> str:
    """Return the module search path, with the package's own folder first."""
    return os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH", "")]))


def run(installed: Path, *command: str, module: str = "veilog") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": beside(installed)}
    done = subprocess.run(
        [sys.executable, "-m", module, *command], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "hospital.parquet"
    files.write(hospital(300, seed=1), path)
    return path


@pytest.mark.nightly
def test_it_is_listed_with_its_package_and_a_broken_one_is_warned_of(installed: Path) -> None:
    done = run(installed, "methods", "--json", "-")
    ours = {method["name"]: method for method in json.loads(done.stdout)}
    assert ours["ends"]["package"] == "veilog-ends 1.0"
    assert ours["ends"]["parameters"][0]["name"] == "least"
    assert "package" not in ours["evolve"]
    assert "broken" not in ours
    assert all(name in done.stderr for name in ("broken-add-on 2.0", "'broken'", "veilog.methods"))


@pytest.mark.slow
@pytest.mark.false_alarm(1e-9, "noise of 12 counts at scale 5 takes 300 cases below 75: 1e-10 (Chernoff)")
def test_the_command_releases_with_it(installed: Path, log: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    options = ("--epsilon", "1", "--activities", "log", "-p", "least=8", "--json", "-")
    facts = json.loads(run(installed, "release", str(log), str(target), "-m", "ends", *options).stdout)
    assert facts["guarantee"]["status"] == "proven" and facts["guarantee"]["epsilon"] == 1.0
    assert facts["parameters"] == {"least": 8} and target.exists()
    (theirs,) = [c for c in facts["guarantee"]["conditions"] if c["code"] == "method-of-another-package"]
    assert theirs["said_by"] == "program"
    assert theirs["text"] == Message("method-of-another-package", method="ends", package="veilog-ends 1.0").english
    of_ours = (*options[:4], "-p", "depth=3", *options[6:])
    ours = run(installed, "release", str(log), str(target), "-m", "laplace", *of_ours, "--overwrite")
    assert "method-of-another-package" not in ours.stdout


@pytest.mark.nightly
def test_python_has_a_plan(installed: Path) -> None:
    code = (
        "import veilog\n"
        "assert veilog.METHODS['ends'].package == 'veilog-ends 1.0'\n"
        "plan = veilog.plan('ends', epsilon=1, activities='log')\n"
        "assert plan.cost.proven\n"
        "(theirs,) = [c for c in plan.cost.conditions if c.code == 'method-of-another-package']\n"
        "assert 'ends' in veilog.METHODS and len(veilog.METHODS) == 15\n"
        "from veilog.testing import check_method; check_method(veilog.METHODS['ends'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": beside(installed), "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.nightly
def test_the_experiment_compares_it(installed: Path, log: Path, tmp_path: Path) -> None:
    run(
        installed,
        *("experiment", "frontier", "--logs", str(log.parent), "--methods", "ends", "--quick", "--runs", "1"),
        *("--out", str(tmp_path), "--processes", "1"),
    )
    assert any("ends" in path.read_text() for path in tmp_path.rglob("*.md"))


@pytest.mark.nightly
def test_the_check_of_the_docs_leaves_it_to_its_package(installed: Path) -> None:
    tests = str(ROOT / "tests" / "test_docs.py")
    run(installed, "-q", "-p", "no:cacheprovider", "-W", "ignore", tests, "-k", "every_method", module="pytest")
