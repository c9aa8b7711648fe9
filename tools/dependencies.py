"""List the installed packages that veilog needs, as constraints or licences.

python tools/dependencies.py constraints     write constraints.txt: the versions that are installed here
python tools/dependencies.py licences        write the table of licences in docs/dependencies.md
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
BEGIN, END = "<!-- make licences -->\n", "<!-- end -->"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LONG = 60
"""Most characters of a licence's name; a longer text is the licence itself."""


def closure(wanted: Iterable[str]) -> dict[str, Distribution]:
    """Return the installed packages of these requirements and of theirs, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(Requirement(text), frozenset[str]()) for text in wanted]
    seen = set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in seen:
            continue
        seen.add((name, frozenset(requirement.extras)))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            print(f"not installed: {requirement}", file=sys.stderr)
            continue
        waiting += [(Requirement(text), frozenset(requirement.extras)) for text in found[name].requires or ()]
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """Return the licence that a package itself names, or an empty text."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    named = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or () if c.startswith("License :: ")]
    named = [name for name in named if name != "OSI Approved"]
    said = (about.get("License") or "").strip()
    if named and not (said and len(said) < LONG):
        return ", ".join(named)
    return said.splitlines()[0] if said and len(said.splitlines()[0]) < LONG else ""


def parts() -> dict[str, list[str]]:
    """Return the requirements of veilog itself, of its extras and of development."""
    project = PROJECT["project"]
    groups = PROJECT["dependency-groups"]
    extras = project["optional-dependencies"]
    return {"always": project["dependencies"], **extras, "development": groups["dev"] + groups["docs"]}


def constraints() -> None:
    everything = [text for wanted in parts().values() for text in wanted] + PROJECT["build-system"]["requires"]
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    head = f"# By `make constraints` with Python {version}: the versions that the tests passed with.\n"
    head += "# PIP_CONSTRAINT=constraints.txt make test\n"
    lines = [f"{name}=={package.version}\n" for name, package in closure(everything).items()]
    (ROOT / "constraints.txt").write_text(head + "".join(lines))
    print(f"constraints.txt: {len(lines)} packages")


def licences() -> None:
    """Write a row for each package of veilog, an extra or development."""
    found = {part: closure(wanted) for part, wanted in parts().items()}
    asked = {canonicalize_name(Requirement(text).name) for wanted in parts().values() for text in wanted}
    lines = []
    for name in sorted(set().union(*found.values())):
        users = [part for part in found if name in found[part]]
        told = ["always"] if "always" in users else [part for part in users if part != "development"]
        if told or name in asked:
            licensed = licence(found[users[0]][name]) or "not said"
            lines.append(f"| {name} | {licensed} | {', '.join(told) or 'development'} |\n")
    head = "\n| package | licence | installed with |\n|---|---|---|\n"
    table = BEGIN + head + "".join(lines) + "\n"
    PAGE.write_text(re.sub(re.escape(BEGIN) + ".*?(?=" + END + ")", lambda _: table, PAGE.read_text(), flags=re.DOTALL))
    print(f"docs/dependencies.md: {len(lines)} packages")


if __name__ == "__main__":
    {"constraints": constraints, "licences": licences}[sys.argv[1]]()
