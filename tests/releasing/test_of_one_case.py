"""Sentences about one thing are in the singular: one case, one activity."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import veilog
from veilog.errors import VeilogError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.singling_out.words import own_path_sentence
from veilog.messages import Message, OwnerMessage
from veilog.methods import METHODS

ONE = hospital(1, seed=1)
SEVERAL = re.compile(
    r"(?<![\d.,=]) ?\b1 (released |original |other )?"
    r"(cases|events|activities|variants|samples|days|steps|people|persons)\b"
    r"|\bof the 1\b|\b1 (case|event|activity|variant) (are|have)\b"
)
OF_GROUPS = {"tlkc": {"k": 1, "l": 1}, "pretsa": {"k": 1}}


def said(name: str, epsilon: float, *, as_published: bool) -> list[str]:
    method = METHODS[name]
    asked = {"epsilon": epsilon} if method.takes_epsilon else {}
    asked |= {"delta": "0.01"} if method.needs_delta else {}
    asked |= {"activities": "log", "seed": 1, "as_published": as_published, **OF_GROUPS.get(name, {})}
    try:
        released = veilog.release(ONE, name, **asked)
        compared = veilog.compare(ONE, released.variants, models=False)
    except VeilogError as error:
        return [str(error)]
    held = [statement.holds for statement in released.guarantee.statements]
    return [str(text) for text in (*released.remarks, *released.owner_only.notes, *held, compared.verdict)]


@pytest.mark.slow
@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("name", sorted(set(METHODS) - {"travag"}))
def test_no_sentence_of_a_release_of_one_case_speaks_of_one_as_of_several(name: str, as_published: bool) -> None:
    for epsilon in (1, 8):
        for text in said(name, epsilon, as_published=as_published):
            assert not SEVERAL.search(text), text


def test_the_path_of_one_case_is_not_that_of_100_percent_of_the_1_cases() -> None:
    assert own_path_sentence(1, 1) == str(OwnerMessage("path-of-one-case"))


def test_a_comparison_counts_one_case_as_one() -> None:
    found = veilog.compare(ONE, hospital(1, seed=2), use_cases=["discovery"])
    assert " 1 variant " in found.verdict
    assert str(Message("original-of-one-case")) in found.use_cases["discovery"].verdict
    added = next(line.meaning for line in found.lines(["variants"]) if line.quantity.title == "variants added")
    assert added.endswith("; 1 released case")


@pytest.mark.slow
def test_one_empty_case_went_missing() -> None:
    released = veilog.release(hospital(300, seed=1), "evolve", epsilon=1, activities="log", seed=1)
    empty = Variants.from_dict({(): 1, ("a",): 9})
    full = Variants.from_dict({("a",): 10})
    pages = (veilog.report.html(replace(released, variants=variants)) for variants in (full, empty))
    said = [re.findall(r'data-point="empty-cases">\D*(\d+) (\w+) ', page) for page in pages]
    assert said == [[], [("1", "case")]]


def test_a_charge_for_one_variant_names_one() -> None:
    held = veilog.twin(Variants.from_dict({("a",): 900, ("b",): 100}), epsilon=1, seed=1)
    codes = [charge.purpose.code for charge in held.guarantee.charges] if held.guarantee else []
    assert "for-one-variant" in codes


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "1 released case, of 1 before"),
        ("de", "1 veröffentlichter Fall, vorher 1"),
        ("fr", "1 cas diffusé, 1 aup"),
    ],
)
def test_a_tile_of_a_page_counts_one_case_as_one(language: str, said: str) -> None:
    one = Variants.from_dict({("a",): 1})
    made = veilog.release(one, "laplace", epsilon=8, depth=1, activities="log", seed=1, allow_no_protection=True)
    page = veilog.report.html(replace(made, variants=one), one, language=language)
    assert said in " ".join(re.sub("<[^>]*>", " ", page).split())


@pytest.mark.parametrize(
    ("without_person", "said"), [(None, "one-case-without-person"), ("own", "one-case-of-its-own")]
)
def test_one_case_that_names_nobody_is_one(without_person: str | None, said: str) -> None:
    frame = hospital(40, seed=1).to_pandas()
    frame["case:person"] = frame["case:concept:name"].where(frame["case:concept:name"] != "P000001")
    asked: dict[str, Any] = {"epsilon": 1, "depth": 1, "activities": "log", "max_cases": 1}
    asked["without_person"] = without_person
    found = veilog.release(frame, "laplace", **asked, unit="case:person")
    assert said in [note.code for note in found.owner_only.notes]
