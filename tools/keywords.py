"""Write the keywords of methods, for completion in editors and for type checkers.

    python tools/keywords.py            write them into src
    python tools/keywords.py --check    report if they match the settings of the methods; status 1 if not

Methods declare each setting once, and this tool makes ``releasing/keywords.py`` from them. It is one class and not one
a method. Overloads by the method's name were tried: editors then complete the same keywords, while mypy answers a slip
with all signatures.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from veilog.methods import METHODS
from veilog.methods.settings import Parameter, python_name
from veilog.releasing.request import OPTIONS, Option

TARGET = Path(__file__).resolve().parents[1] / "src" / "veilog" / "releasing" / "keywords.py"
MOST_CHOICES = 10
"""Most choices that a type lists; beyond, a setting is a text, and its method names the choices."""
HEAD = '''# ruff: noqa: E741 - names of the methods
"""Options of a release and settings of the methods; written by ``make tables``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypedDict

from veilog.privacy.account.budgets import Number
from veilog.privacy.domain import Domain, Window
from veilog.privacy.partition import Partition
from veilog.releasing.prior import PriorChoice
from veilog.rules.rules import RulesChoice


class Keywords(TypedDict, total=False):
    """Options of a release and settings of all methods of this package.

    Editors and type checkers read them. Their help stands where they are declared: in ``OPTIONS`` of a request, and in
    the settings of a method. A call checks which of them its method has.
    """

'''


def settings() -> dict[str, dict[str, Parameter]]:
    """Return the settings by name, each with our methods that have it.

    Options that every method has are left out.
    """
    found: dict[str, dict[str, Parameter]] = defaultdict(dict)
    for method in METHODS.values():
        for setting in () if method.package else method.parameters:
            if setting.name not in OPTIONS or not OPTIONS[setting.name].keyword:
                found[python_name(setting.name)][method.name] = setting
    return found


def type_of(held: dict[str, Parameter]) -> str:
    """Return the type of a setting of these methods; None leaves it to the method."""
    choices = dict.fromkeys(choice for setting in held.values() for choice in setting.choices)
    kinds = dict.fromkeys(setting.kind.__name__ for setting in held.values() if not setting.choices)
    if len(choices) > MOST_CHOICES:
        kinds |= {"str": None}
    elif choices:
        kinds |= {f"Literal[{', '.join(map(repr, choices))}]": None}
    kinds |= {"None": None} if any(setting.default is None for setting in held.values()) else {}
    return " | ".join(kinds)


def option_type(option: Option) -> str:
    """Return the type of an option of a release."""
    return option.python or f"{option.kind.__name__}{' | None' if option.default is None else ''}"


def keywords() -> str:
    """Return the module, as the formatter writes it."""
    lines = [f"    {option.name}: {option_type(option)}" for option in OPTIONS.values() if option.keyword]
    lines += [f"    {name}: {type_of(held)}" for name, held in settings().items()]
    call = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    text = HEAD + "\n".join(lines) + "\n"
    return subprocess.run(call, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    found = keywords()
    current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == found
    if "--check" in sys.argv[1:]:
        print("they are as the settings are" if current else f"src/veilog/releasing/{TARGET.name}: make tables")
        return 0 if current else 1
    if not current:
        TARGET.write_text(found, encoding="utf-8")
        print(f"written: src/veilog/releasing/{TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
