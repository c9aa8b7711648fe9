"""No test asserts a sentence: codes, values and exit statuses say what happened, in whatever words.

A sentence is a text of four words or more in which a word of letters is followed by one in small letters, and that is
no markup, option, query or command. An assertion pins one that it compares with (``==``, ``in``), by itself or within a
tuple, list, set, dict, sum of texts or f-string; ``pytest.raises`` pins one that stands in its ``match``. What is given
to a call or stands in an index is no sentence that is compared: labels of columns, codes with their values.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
WORDS = re.compile(r"[A-Za-zäöüé]{2,} [a-zäöüé]{2,}")
NO_SENTENCES = ("<", "--", "{", "SELECT", "veilog ", "`veilog ")

ALLOWED: dict[str, int] = {
    "cli/test_cli.py": 14,
    "cli/test_cli_brief.py": 7,
    "cli/test_cli_details.py": 1,
    "cli/test_cli_dossier.py": 6,
    "cli/test_cli_engines.py": 2,
    "cli/test_cli_groups.py": 5,
    "cli/test_cli_large.py": 2,
    "cli/test_cli_ledger.py": 20,
    "cli/test_cli_model.py": 4,
    "cli/test_cli_persons.py": 6,
    "cli/test_cli_public_facts.py": 5,
    "cli/test_cli_purposes.py": 1,
    "cli/test_cli_refusals.py": 1,
    "cli/test_cli_serve.py": 3,
    "cli/test_cli_slips.py": 1,
    "cli/test_cli_twin.py": 13,
    "cli/test_dry_run.py": 6,
    "cli/test_hints.py": 1,
    "cli/test_json_schemas.py": 2,
    "cli/test_pipes.py": 2,
    "cli/test_places.py": 1,
    "cli/test_stopped.py": 10,
    "cli/test_told_losses.py": 1,
    "language/test_catalogues.py": 1,
    "language/test_spoken.py": 6,
    "measures/disclosure/test_disclosure.py": 2,
    "measures/process_model/test_models.py": 4,
    "measures/purposes/test_attributes_kept.py": 7,
    "measures/purposes/test_discovery.py": 1,
    "measures/purposes/test_purpose.py": 5,
    "measures/singling_out/test_finding.py": 5,
    "measures/singling_out/test_inferring.py": 1,
    "measures/singling_out/test_linking.py": 3,
    "measures/singling_out/test_singling_out.py": 5,
    "measures/test_added.py": 7,
    "measures/test_comparison.py": 9,
    "measures/test_rework.py": 1,
    "measures/test_verdicts.py": 1,
    "test_docs.py": 2,
    "test_messages.py": 3,
    "test_notebook.py": 1,
    "testing/test_check_measure.py": 1,
    "testing/test_check_method.py": 1,
    "web/jobs/test_jobs.py": 3,
    "web/jobs/test_store.py": 1,
    "web/test_access.py": 3,
    "web/test_browser.py": 1,
    "web/test_forms.py": 1,
    "web/test_languages.py": 4,
    "web/test_limits.py": 2,
    "web/test_listening.py": 1,
    "web/test_owner.py": 31,
    "web/test_pages.py": 14,
    "web/test_routes.py": 3,
    "web/test_uploads.py": 2,
    "web/work/test_declared.py": 11,
    "web/work/test_in_german.py": 2,
    "web/work/test_kept_work.py": 9,
    "web/work/test_previews.py": 1,
    "web/work/test_reading.py": 23,
    "web/work/test_standing.py": 13,
    "web/work/test_work.py": 11,
}
"""How many are left, by file; none may be added, and what is gone is taken out here."""


def is_sentence(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text.split()) >= 4
        and WORDS.search(text) is not None
        and not text.lstrip().startswith(NO_SENTENCES)
    )


def compared(node: ast.expr) -> Iterator[object]:
    """The literals of an operand."""
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.BinOp | ast.IfExp | ast.Starred):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from compared(child)


def pinned(tree: ast.AST) -> Iterator[int]:
    """The line of each assertion that pins a sentence."""
    for node in ast.walk(tree):
        texts: list[object] = []
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Compare):
                    texts += [text for operand in (part.left, *part.comparators) for text in compared(operand)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises":
            texts = [text for word in node.keywords if word.arg == "match" for text in compared(word.value)]
        else:
            continue
        if any(map(is_sentence, texts)):
            yield node.lineno


def left() -> Counter[str]:
    return Counter(
        {
            str(path.relative_to(TESTS)): count
            for path in sorted(TESTS.rglob("*.py"))
            if (count := len(list(pinned(ast.parse(path.read_text())))))
        }
    )


def test_what_pins_a_sentence_is_found() -> None:
    for pin in (
        'assert "The log has no cases" in str(error)',
        'assert said == f"The log has {n} cases, no more"',
        'assert told == ("a", ["There are three of them"])',
        'with pytest.raises(ValueError, match="which is not a date"): pass',
    ):
        assert list(pinned(ast.parse(pin))) == [1], pin
    for fine in (
        'assert error.code == "log-without-cases"',
        'assert str(Message("only-looked", at="cases of two wards")) in shown',
        'assert table["best of the others"] == 3',
        'assert "veilog release log to out" in shown',
        'with pytest.raises(ValueError, match="not a date"): pass',
    ):
        assert list(pinned(ast.parse(fine))) == [], fine


def test_no_assertion_pins_a_sentence() -> None:
    more = left() - Counter(ALLOWED)
    assert not more, "assert codes and values instead"


def test_files_that_are_gone_are_allowed_nothing() -> None:
    assert all((TESTS / name).exists() for name in ALLOWED)
