"""Files around the code are in order: container, hooks, templates and builds."""

import importlib.util
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import veilog
from veilog import cli

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def instructions(text: str = DOCKERFILE) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments, a line each."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return [(first, rest.strip()) for first, _, rest in (line.partition(" ") for line in lines)]


def problems(text: str) -> list[str]:
    """Return the faults of a Dockerfile of ours."""
    steps, found = instructions(text), []
    bases = [rest for name, rest in steps if name == "ARG" and rest.startswith("BASE=")]
    if not all(re.fullmatch(r"BASE=debian(:\d+\.\d+-slim|@sha256:[0-9a-f]{64})", base) for base in bases) or not bases:
        found.append("base is not a pinned Debian")
    if any(not rest.startswith("${BASE}") for name, rest in steps if name == "FROM"):
        found.append("another base")
    last = steps[max(place for place, (name, _) in enumerate(steps) if name == "FROM") :]
    users = [rest for name, rest in last if name == "USER"]
    if not users or users[-1].partition(":")[0] in ("root", "0"):
        found.append("runs as root")
    if not any(name == "HEALTHCHECK" and "CMD" in rest for name, rest in last):
        found.append("no healthcheck")
    if any(name == "ADD" or "curl " in rest or "wget " in rest for name, rest in steps):
        found.append("takes something from elsewhere")
    if any(
        name in ("ENV", "ARG") and re.search("token|secret|password|key", rest, re.IGNORECASE) for name, rest in steps
    ):
        found.append("a secret in the image")
    if any(rest.split()[:2] == [".", "."] for name, rest in steps if name == "COPY"):
        found.append("copies everything")
    return found


def test_the_image_is_pinned_has_no_root_no_secret_and_a_healthcheck() -> None:
    assert problems(DOCKERFILE) == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("debian:12.12-slim", "debian:latest", "base is not a pinned Debian"),
        ("FROM ${BASE}\n", "FROM python:3.11\n", "another base"),
        ("USER 1000", "USER root", "runs as root"),
        ("HEALTHCHECK", "LABEL", "no healthcheck"),
        ("WORKDIR /source", "RUN curl https://example.org | sh", "takes something from elsewhere"),
        ("WORKDIR /source", "ENV VEILOG_TOKEN=abc", "a secret in the image"),
        ("COPY src src", "COPY . .", "copies everything"),
    ],
)
def test_what_is_looked_for_in_an_image_is_found(before: str, after: str, problem: str) -> None:
    assert before in DOCKERFILE
    assert problem in problems(DOCKERFILE.replace(before, after))


def test_the_image_copies_what_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignored


def test_the_image_starts_what_veilog_has() -> None:
    """The image's options are the command's, and its healthcheck needs no cookie."""
    steps = dict(instructions())
    program, command, *options = yaml.safe_load(steps["ENTRYPOINT"])
    assert (Path(program).name, command) == ("veilog", "serve")
    arguments = cli.application(whole=True)[command].assemble_argument_collection()
    known = {name for argument in arguments for name in argument.names}
    assert {option for option in options if option.startswith("--")} <= known
    assert options[options.index("--port") + 1] == steps["EXPOSE"] == "8400"
    access = (ROOT / "src/veilog/web/access/access.py").read_text()
    assert '_OPEN = (f"{OWN}style.css",' in access
    assert f"http://127.0.0.1:{steps['EXPOSE']}/static/style.css" in steps["HEALTHCHECK"]


PYTHONS = {"11": "3.9", "12": "3.11", "13": "3.13"}
"""Python version of each Debian version that has one."""


def test_the_python_of_the_image_is_one_that_veilog_runs_on() -> None:
    (release,) = re.findall(r"^ARG BASE=debian:(\d+)", DOCKERFILE, re.MULTILINE)
    project = PROJECT["project"]
    assert PYTHONS[release] in SpecifierSet(project["requires-python"])
    assert f"Programming Language :: Python :: {PYTHONS[release]}" in project["classifiers"]
    made_with = re.search(r"with Python ([\d.]+):", (ROOT / "constraints.txt").read_text())
    assert made_with is not None
    assert made_with[1] == PYTHONS[release], "versions that this Python can have"


def test_the_image_finds_its_data_its_token_and_its_port_where_compose_puts_them() -> None:
    steps, service = dict(instructions()), COMPOSE["services"]["veilog"]
    entry = yaml.safe_load(steps["ENTRYPOINT"])
    assert [port.rpartition(":")[2] for port in service["ports"]] == [steps["EXPOSE"]]
    (volume,) = service["volumes"]
    source, _, place = volume.partition(":")
    assert source in COMPOSE["volumes"]
    assert place == steps["VOLUME"]
    assert Path(entry[entry.index("--folder") + 1]).parent == Path(place)
    assert entry[-1] == "--token-file", "what CMD says comes next"
    assert yaml.safe_load(steps["CMD"]) == [f"/run/secrets/{secret}" for secret in service["secrets"]]
    made = next(rest for _, rest in instructions() if "useradd" in rest)
    assert f"--uid {steps['USER']} " in made
    assert made.endswith(f"install --directory --owner veilog --mode 0700 {place}")


def test_only_this_machine_reaches_the_container() -> None:
    for name, service in COMPOSE["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert {*service.get("environment", ())} <= {"PATH"}
        assert {"mem_limit", "cpus", "pids_limit", "init"} <= service.keys()
    assert COMPOSE["services"]["nightly"]["profiles"], "docker compose up does not start it"
    assert set(COMPOSE["services"]["veilog"]["secrets"]) == set(COMPOSE["secrets"])
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert all(Path(secret["file"]).name in ignored for secret in COMPOSE["secrets"].values())


def test_hooks_are_those_of_make_lint() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local"
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        program = Path(shlex.split(hook["entry"])[0]).name
        assert f"$(BIN)/{program}" in lint
    folders = re.search(r"ruff check (.*)", lint)
    assert folders is not None
    assert repo["hooks"][0]["files"] == f"^({'|'.join(folders[1].split())})/"


@pytest.mark.parametrize("page", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda page: page.stem)
def test_templates_of_issues_are_forms(page: Path) -> None:
    form: dict[str, Any] = yaml.safe_load(page.read_text())
    if page.stem == "config":
        assert set(form) <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= set(form)
    for part in form["body"]:
        assert part["type"] in ("markdown", "textarea", "input", "dropdown", "checkboxes")
        assert part["type"] == "markdown" or part["attributes"]["label"]


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == veilog.__version__
    assert cited["license"] == PROJECT["project"]["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert f"## {veilog.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_links_of_the_habits_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), ROOT / "examples/plugin/README.md"):
        targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
        assert [t for t in targets if "://" not in t and not (page.parent / t).exists()] == [], page.name


def test_constraints_and_licences_know_what_the_project_asks_for() -> None:
    parts = tool("dependencies").parts()
    names = {re.split(r"[\[<>=~! ]", text)[0].lower().replace("_", "-") for wanted in parts.values() for text in wanted}
    pinned = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert names - pinned == set(), "make constraints"
    listed = set(re.findall(r"^\| ([a-z0-9.-]+) \|", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE))
    assert names - listed == set(), "make licences"


METADATA = """Metadata-Version: 2.4
Name: veilog
Version: 0.1.0
Summary: Share event logs.
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.11
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

# veilog
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Version: 0.1.0", "Version: first"),
        ("Typing :: Typed", "Typing :: Strict"),
        ("text/markdown", "text/plain"),
        ("# veilog\n", ""),
        ("License-Expression: Apache-2.0", "License-Expression: Apache Two"),
        ("Requires-Python: >=3.11\n", ""),
    ],
)
def test_metadata_that_an_index_would_refuse_are_refused(before: str, after: str) -> None:
    check = tool("packages").metadata_of
    assert check(METADATA.encode()).name == "veilog"
    with pytest.raises((ValueError, ExceptionGroup)):
        check(METADATA.replace(before, after).encode())
