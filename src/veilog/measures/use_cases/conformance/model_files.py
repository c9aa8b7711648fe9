"""Reading the model that cases are checked against: BPMN, PNML, PTML, or declare constraints, as the file has it.

Constraints are JSON, ``{"constraints": [{"template": "response", "activities": ["A", "B"]}, ...]}`` with ``"times"``
where a template counts, or text, one a line as in files of other declare tools: ``Response[A, B]``, ``Existence2[A]``.
Lines that declare activities and those that begin with ``#`` say nothing; conditions on data are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeAlias

from veilog._files import content_of
from veilog.errors import InputError
from veilog.measures.use_cases.conformance.bpmn import read_bpmn
from veilog.measures.use_cases.conformance.elements import parsed
from veilog.measures.use_cases.conformance.pnml import read_pnml
from veilog.measures.use_cases.conformance.ptml import read_ptml
from veilog.mining.replay import Net
from veilog.rules.rule_files import Constraint, constraint_in, constraint_of

Model: TypeAlias = Net | tuple[Constraint, ...]


def read_model(path: Path) -> Model:
    """Return the model in a file; an :class:`InputError` says what of it cannot be used."""
    try:
        content = content_of(path)
    except OSError as error:
        raise InputError("model-not-readable", path=path, reason=error.strerror) from error
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<" or content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        root = parsed(path, content)
        if root.tag == "pnml":
            return read_pnml(root, path)
        if root.tag == "definitions":
            return read_bpmn(root, path)
        if root.tag == "ptml":
            return read_ptml(root, path)
        raise InputError("model-format-unknown", path=path, tag=root.tag)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("model-not-utf8", path=path) from error
    constraints = _json(text, path) if start in (b"{", b"[") else _lines(text, path)
    if not constraints:
        raise InputError("constraints-file-empty", path=path)
    return tuple(dict.fromkeys(constraints))


def _json(text: str, path: Path) -> list[Constraint]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise InputError("constraints-not-json", path=path, reason=error) from error
    entries = told.get("constraints") if isinstance(told, dict) else told
    if not isinstance(entries, list):
        raise InputError("constraints-list-missing", path=path)
    found = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or entry.keys() - {"template", "activities", "times"}:
            raise InputError("constraint-form-wrong", path=path, number=number)
        template, activities, times = entry.get("template"), entry.get("activities"), entry.get("times", 1)
        names = [name for name in activities if isinstance(name, str)] if isinstance(activities, list) else []
        if not isinstance(template, str) or names != activities or not isinstance(times, int):
            raise InputError("constraint-parts-wrong", path=path, number=number)
        found.append(constraint_of(template, tuple(names), times, path, None))
    return found


def _lines(text: str, path: Path) -> list[Constraint]:
    numbered = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        constraint_in(line, path, number)
        for number, line in numbered
        if line and not line.startswith(("#", "activity "))
    ]
