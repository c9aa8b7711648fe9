"""Print long sentences and old words of the docs, and faults of docstrings.

    python tools/prose.py [PAGE or MODULE ...]

It reads prose: no code, formulas, literature, tables that a command writes, or pages that an experiment writes whole.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 25
"""Most words of a sentence."""
FIRST = ("README.md", "docs/index.md", "docs/why.md", "docs/tutorial.md", "docs/how-to/*.md")
OFFICER = ("docs/guarantees.md", "docs/dossier.md", "docs/serve.md", "docs/ledger.md", "docs/report.md")
PROJECT = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")

OLD = {
    "somebody|someone|whoever|nobody": "a person, the attacker, the recipient, no person",
    "promised?|promises": "guarantee",
    "cells?": "setting, run, place",
    "faces": "modes",
    "(?:leaves?|leaving) (?:the|your) house": "is published",
    r"(?:gives?|gave|giving) (?:\w+ )?away": "share (send), reveal (leak)",
    "ceilings?|floors?": "reference: the original, reference: another sample",
    "leak lines?": "unprotected baseline",
    "made-up": "synthetic",
    "imagine[sd]?": "synthetic, sampled",
    "twins?": "synthetic log of the same size",
    "unnamed": "without a person",
    "purposes?": "use cases",
    "at risk": "attack test",
    "for you (?:only|alone)|owner-only": "confidential",
    "remark(?:s|ed)?|cautions?": "warning, finding",
    "(?:is|are) (?:told|said)": "print, report, identify, distinguish, reveal",
    "(?:pays?|paid) for|for nothing": "uses epsilon, spent",
    "(?:inside|outside) (?:reports?|versions?)": "internal report, recipient's report",
    "whom": "who is protected",
}
"""Words to avoid (patterns), and their replacements."""
ALLOWED = re.compile(r"contract and purpose|is the purpose|veilog twin", re.IGNORECASE)

_WHOLE = re.compile(r"^`veilog experiment [^`]*`, veilog \d[\w.]*, (?:full|quick) profile", re.MULTILINE)
"""Mark of a page that ``veilog experiment`` writes whole: command and version in its third line."""
_NOT_READ = (
    re.compile(r"<!-- (?:python|make|veilog) .*?<!-- end -->|<!--.*?-->", re.DOTALL),
    re.compile(r"^ *```.*?^ *```|^:::.*?^:::", re.DOTALL | re.MULTILINE),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"^## Literature\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE),
    re.compile(r"^\|[-:| ]+\|$", re.MULTILINE),
)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*>]|\d+\.|: |\||#|\[\w+\]:) ?)|(?<=\n)#[^\n]*\n|\||\s·\s")
"""End of a paragraph, an item, a cell of a table or a heading."""
_END = re.compile(r"(?<=[.!?])[\"”)*_]*\s+(?=[\"“(*_`\[]*(?:[A-Z0-9`$∅-￿-]|veilog|systemd|pm4py))")
_SHORT = re.compile(r"\b(e\.g|i\.e|cf|vs|et al|Art|no|No|[A-Z])\.(?=\s)")
"""Abbreviations, whose full stop ends no sentence."""


FIRST_LINE = 80
"""The most characters in the first line of a docstring."""
_NO_BEGINNING = re.compile(r"(?:How|Of|That|Told|What|Where|Whether|Which|Who|Whoever|Whose)\b")
_OLD_IN_CODE = re.compile(
    r"\b(?:tells?|told|telling|says?|said|saying|somebody|whoever|nobody|pays? for|paid for|(?:are|is) had)\b",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"``[^`]*``|`[^`]*`|\"[^\"]*\"", re.DOTALL)


def modules() -> list[Path]:
    """Return all modules: of the package, the tests, the benchmarks and the tools."""
    return [path for name in ("src", "tests", "bench", "tools", "examples") for path in (ROOT / name).rglob("*.py")]


def docstrings(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line and text of docstrings; False for those of attributes, else True."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node)
            if found is not None:
                yield node.body[0].lineno, found, True
            for before, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                    value = getattr(after.value, "value", None)
                    if isinstance(value, str):
                        yield after.lineno, value, False


def faults(text: str) -> list[str]:
    """Return faults of a module's docstrings: beginnings, words, long first lines."""
    found = []
    for line, docstring, whole in docstrings(text):
        first, words = docstring.split("\n")[0], _OLD_IN_CODE.findall(_LITERAL.sub("", docstring))
        if _NO_BEGINNING.match(first):
            found.append(f"{line}: begins with {first.split()[0]}")
        if words:
            found.append(f"{line}: {', '.join(words)}")
        if whole and len(first) > FIRST_LINE:
            found.append(f"{line}: {len(first)} characters in the first line")
    return found


def pages() -> list[Path]:
    """Return the README, the pages of the project and all pages of the docs."""
    found = (page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
    return [ROOT / "README.md", *(ROOT / name for name in PROJECT), *sorted(found)]


def strict() -> set[Path]:
    """Return the pages in which no sentence may be too long."""
    return {page for pattern in FIRST + OFFICER for page in ROOT.glob(pattern)}


def written(text: str) -> bool:
    """Return True if ``veilog experiment`` writes all of a page."""
    return _WHOLE.search(text) is not None


def prose(text: str) -> str:
    """Return the prose of a page, with links as their texts and code as one word."""
    for pattern in _NOT_READ:
        text = pattern.sub("\n", text)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"(`+)[^`]+\1|\$[^$\n]+(?:\n[^$\n]+)?\$", "`code`", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page, block by block."""
    for block in _BLOCK.split(prose(text)):
        whole = _SHORT.sub(r"\1·", " ".join(block.split()))
        yield from (found.replace("·", ".") for found in _END.split(whole) if found)


def length(sentence: str) -> int:
    """Return the number of words."""
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def too_long(text: str) -> list[str]:
    """Return the sentences of a page that have more than ``LIMIT`` words."""
    return [] if written(text) else [found for found in sentences(text) if length(found) > LIMIT]


def old_words(text: str) -> list[str]:
    """Return the words to avoid on a page, as they stand there."""
    if written(text):
        return []
    plain = ALLOWED.sub("", re.sub(r"\s+", " ", prose(text).replace("|", " ")))
    return [found.lower() for found in re.findall(rf"(?i)\b(?:{'|'.join(OLD)})(?:'s|’s)?\b", plain)]


def main(names: list[str]) -> int:
    """Print the lists for the named pages and modules, or for all."""
    chosen = [Path(name).resolve() for name in names] or pages() + modules()
    lengthy, old, faulty = 0, 0, 0
    for path in chosen:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if path.suffix == ".py":
            wrong = faults(text)
            faulty += len(wrong)
            print("".join(f"{name}:{fault}\n" for fault in wrong), end="")
            continue
        found, words = too_long(text), old_words(text)
        lengthy, old = lengthy + len(found), old + len(words)
        for sentence in found:
            print(f"{name}: {length(sentence)} words: {sentence}")
        if words:
            print(f"{name}: {', '.join(words)}")
    print(f"{lengthy} sentences of more than {LIMIT} words, {old} old words, {faulty} faults of docstrings")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
