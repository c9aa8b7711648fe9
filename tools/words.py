"""Print the retired words of each page of the docs.

    python tools/words.py

Words are what people read: not code, not formulas set apart, not tables that a command writes (their cells are data).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RETIRED = {
    "somebody": "a person, the adversary, the recipient",
    "someone": "a person, the adversary, the recipient",
    "whoever": "who, an adversary who",
    "nobody": "no person",
    "promise": "guarantee",
    "cell": "setting, run, place",
    "failure": "delta, or what goes wrong",
    "leaves the house": "is published",
    "leave the house": "is published",
}
"""Words of ours that gave way to the field's, and what is said in their place."""
_GENERATED = re.compile(r"<!-- (?:python|make|veilog) .*?<!-- end -->", re.DOTALL)
_WHOLE = re.compile(r"^`veilog experiment [^`]*`, veilog \d[\w.]*, (?:full|quick) profile", re.MULTILINE)
"""What a page has that ``veilog experiment`` writes whole: the command and version in its third line."""
_TABLE = re.compile(r"^\|.*\n", re.MULTILINE)
_NOT_READ = (
    _GENERATED,
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"^:::.*?^:::", re.DOTALL | re.MULTILINE),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"^\|[-:| ]+\|$", re.MULTILINE),
)


def pages() -> list[Path]:
    """Return the README and all pages of the docs."""
    found = (page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
    return [ROOT / "README.md", *sorted(found)]


def whole(text: str) -> bool:
    """Return whether ``veilog experiment`` writes all of a page."""
    return _WHOLE.search(text) is not None


def read(text: str) -> str:
    """Return what people read of a page."""
    for part in (_TABLE, *_NOT_READ) if whole(text) else _NOT_READ:
        text = part.sub("", text)
    return re.sub(r"\]\([^)]*\)", "]", text).replace("|", " ")


def retired(text: str) -> list[str]:
    """Return the retired words of a page, as they stand there; those between backticks are names."""
    plain = re.sub(r"`[^`]*`", "", read(text))
    forms = "|".join(rf"{word}(?:s|d|'s|’s)?" for word in RETIRED)
    return [
        " ".join(found.lower().split()) for found in re.findall(rf"(?i)\b(?:{forms})\b", re.sub(r"\s+", " ", plain))
    ]


def main() -> int:
    for page in pages():
        if found := retired(page.read_text()):
            print(f"{page.relative_to(ROOT)}: {', '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
