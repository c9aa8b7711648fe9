"""Bring the catalogues of languages up to date with the sentences in the code.

    python tools/catalogues.py          add new sentences (to be translated) and remove unused ones
    python tools/catalogues.py de       begin a catalogue for a new language

The sentences come from the arguments of ``gettext``, ``ngettext``, ``pgettext`` and ``gettext_noop`` (``_`` in some
files), and from those of ``_``, ``_p`` and ``ngettext`` in templates. The constructors and the tables of facts that are
listed here have more, and so have the descriptions of a method's settings. A sentence with ``{unit}`` becomes one about
a case and one about a person: their articles differ.

The English catalogue holds the sentences of messages (:mod:`veilog.messages`), by code. Other languages have those that
pages and reports can show, in the words for pages if there are such. Messages of the command or Python alone are in
English.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, nodes

from veilog._language import UNITS
from veilog._language.catalogue import CatalogueEntry, entries

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "veilog"
CATALOGUES = SOURCE / "_language"
FUNCTIONS = {"gettext": (0,), "gettext_noop": (0,), "_": (0,), "ngettext": (0, 1), "pgettext": (0, 1), "_p": (0, 1)}
"""Positions of their arguments that are text."""
CONTEXTUAL = {"pgettext", "_p"}
CONSTRUCTORS = {
    "DeltaOptional": (0,),
    "Problem": (1, 2),
}
"""Values that look up their texts at these positions when they are shown."""
KEYWORDS = {
    ("DeltaOptional", "buys"): 0,
}
"""Positions of texts that have a name."""
TABLES = {
    "measures/measures.toml": ("plain",),
    "measures/use_cases/use_cases.toml": ("title", "unit"),
    "methods/methods.toml": ("title", "advice", "guarantee", "as_published"),
}
"""Tables of facts, and the names of their texts."""
HEAD = """\
msgid ""
msgstr ""
"Language: {language}\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""


@dataclass(frozen=True)
class Sentence:
    """Sentence to be translated, and the first file that uses it."""

    context: str
    text: str
    plural: str
    place: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.context, self.text, self.plural


def sentences() -> dict[tuple[str, str, str], Sentence]:
    """Return all sentences in the order of the files and of the lines in them."""
    found: dict[tuple[str, str, str], Sentence] = {}
    kinds = ("*.py", "*.html", "*.jinja")
    read = {".py": _in_code, ".toml": _in_table}
    for path in sorted({path for kind in kinds for path in SOURCE.rglob(kind)} | {SOURCE / table for table in TABLES}):
        said = read.get(path.suffix, _in_template)(path)
        for context, text, plural in said:
            for unit in UNITS if "{unit}" in text else ("",):
                one = Sentence(
                    context,
                    text.replace("{unit}", unit) if unit else text,
                    plural,
                    path.relative_to(SOURCE).as_posix(),
                )
                found.setdefault(one.key, one)
    return found


ENGLISH_ONLY = (
    "cli/",
    "experiments/",
    "audits/",
    "testing/",
    "training.py",
    "mining/inductive",
    "mining/language",
    "mining/replay",
    "mining/tree",
    "releasing/suggest",
    "_notebook",
)
"""Places of messages that no page and no report shows."""
NOTHING = "-"


def english() -> dict[str, dict[str, str]]:
    """Return the texts of every code in the English catalogue, by context."""
    found: dict[str, dict[str, str]] = {}
    for entry in entries((CATALOGUES / "en.po").read_text(encoding="utf-8")):
        if entry.text:
            found.setdefault(entry.text, {})[entry.context] = entry.said[0]
    return found


def places(codes: Iterable[str]) -> dict[str, list[str]]:
    """Return the files that use each code as it stands."""
    found: dict[str, list[str]] = {code: [] for code in codes}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if _is_text(node) and node.value in found:
                found[node.value].append(path.relative_to(SOURCE).as_posix())
    return found


def messages() -> dict[tuple[str, str, str], Sentence]:
    """Return a language's messages by code and context, each with its first file."""
    texts, wanted = english(), {}
    for code, files in sorted(places(texts).items(), key=lambda item: (item[1][:1], item[0])):
        if files and all(file.startswith(ENGLISH_ONLY) for file in files):
            continue
        for part in ("", "advice"):
            for_pages = f"{part} pages".strip()
            context = for_pages if for_pages in texts[code] else part
            if texts[code].get(context, NOTHING) != NOTHING:
                one = Sentence(context, code, "", files[0] if files else "messages.py")
                wanted[one.key] = one
    return wanted


def _in_code(path: Path) -> Iterator[tuple[str, str, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if "methods" in path.relative_to(SOURCE).parts:
        yield from (("", text, "") for text in _of_settings(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        texts = {i: arg.value for i, arg in enumerate(node.args) if _is_text(arg)}
        texts |= {i: word.value.value for word in node.keywords for i in _place(name, word.arg) if _is_text(word.value)}
        yield from _said(name, texts)


def _of_settings(tree: ast.Module) -> Iterator[str]:
    """Yield the second part of each ``Annotated[...]``, the description of a setting."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            yield from (part.value for part in parts[1:2] if _is_text(part))


def _in_table(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the table's texts under the listed names, in order; a list has several."""
    wanted = TABLES[path.relative_to(SOURCE).as_posix()]
    for facts in tomllib.loads(path.read_text(encoding="utf-8")).values():
        for row in (facts, *facts.get("quantities", ()), *facts.get("aspects", ())):
            for said in (row.get(name, "") for name in wanted):
                yield from (("", text, "") for text in ([said] if isinstance(said, str) else said) if text)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _place(name: str, keyword: str | None) -> tuple[int, ...]:
    return (KEYWORDS[name, keyword],) if (name, keyword) in KEYWORDS else ()


def _in_template(path: Path) -> Iterator[tuple[str, str, str]]:
    tree = Environment(autoescape=True).parse(path.read_text(encoding="utf-8"))
    for node in tree.find_all(nodes.Call):
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        texts = {
            i: arg.value
            for i, arg in enumerate(node.args)
            if isinstance(arg, nodes.Const) and isinstance(arg.value, str)
        }
        yield from _said(name, texts)


def _said(name: str, texts: dict[int, str]) -> Iterator[tuple[str, str, str]]:
    """Yield context, text and plural of a call; nothing if the text is in a variable."""
    if name in CONSTRUCTORS:
        yield from (("", texts[i], "") for i in CONSTRUCTORS[name] if texts.get(i))
    elif name in FUNCTIONS and all(i in texts for i in FUNCTIONS[name]):
        first, *more = (texts[i] for i in FUNCTIONS[name])
        if name in CONTEXTUAL:
            yield first, more[0], ""
        else:
            yield "", first, more[0] if more else ""


def written(head: str, language: str, wanted: dict[tuple[str, str, str], Sentence], kept: list[CatalogueEntry]) -> str:
    """Return the text of a catalogue: the wanted sentences with kept translations."""
    said = {(entry.context, entry.text, entry.plural): entry.said for entry in kept}
    blocks = [head.strip("\n") if head else HEAD.format(language=language).strip("\n")]
    for sentence in wanted.values():
        forms = said.get(sentence.key, ("", "") if sentence.plural else ("",))
        lines = [f"#: {sentence.place}"]
        if sentence.context:
            lines.append(f"msgctxt {_quoted(sentence.context)}")
        lines.append(f"msgid {_quoted(sentence.text)}")
        if sentence.plural:
            lines.append(f"msgid_plural {_quoted(sentence.plural)}")
            lines += [f"msgstr[{i}] {_quoted(form)}" for i, form in enumerate(forms)]
        else:
            lines.append(f"msgstr {_quoted(forms[0])}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def main(arguments: list[str]) -> None:
    """Write the catalogues."""
    wanted = sentences() | messages()
    others = {*CATALOGUES.glob("*.po"), *(CATALOGUES / f"{name}.po" for name in arguments)} - {CATALOGUES / "en.po"}
    for path in sorted(others):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        head, _, _ = text.partition("\n\n")
        path.write_text(written(head, path.stem, wanted, [*entries(text)]), encoding="utf-8")
        lacking = sum(not all(entry.said) for entry in entries(path.read_text(encoding="utf-8")))
        print(f"{path.name}: {len(wanted)} sentences, {lacking} to translate")


if __name__ == "__main__":
    main(sys.argv[1:])
