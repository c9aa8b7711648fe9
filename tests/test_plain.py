"""Dataclasses in JSON: their fields in order, but for declared exceptions."""

import importlib
import json
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, get_args, get_type_hints

import pytest

import veilog
from veilog._plain import InJson, Misfit, ToJson, from_plain, to_json, to_plain


@dataclass(frozen=True)
class Inner:
    pairs: tuple[tuple[str, float], ...]
    exact: Fraction = Fraction(1, 3)


@dataclass(frozen=True)
class Outer(ToJson):
    last: Annotated[int, InJson(name="first", then=("twice", "thrice"))]
    inner: Inner
    share: Annotated[Fraction, InJson(as_=float)]
    facts: Mapping[str, tuple[int, ...]]
    hidden: Annotated[object, InJson(left_out="always")] = None
    seldom: Annotated[int | None, InJson(left_out="at its default")] = None

    @property
    def twice(self) -> int:
        return 2 * self.last

    def thrice(self) -> int:
        return 3 * self.last


def test_a_value_is_told_as_its_class_says() -> None:
    value = Outer(2, Inner((("a", 0.5),)), Fraction(1, 4), {"b": (1, 2)}, hidden=object())
    assert json.dumps(value.to_json()) == (
        '{"first": 2, "twice": 4, "thrice": 6, "inner": {"pairs": [["a", 0.5]], "exact": "1/3"}, '
        '"share": 0.25, "facts": {"b": [1, 2]}}'
    )
    assert to_json([value]) == [value.to_json()]
    assert Outer(1, Inner(()), Fraction(0), {}, seldom=0).to_json()["seldom"] == 0


@dataclass(frozen=True)
class Itself:
    a: int

    def to_json(self) -> dict[str, object]:
        return {"own words": self.a}


def test_a_class_with_words_of_its_own_is_asked_for_them() -> None:
    assert to_json({"it": (Itself(1),)}) == {"it": [{"own words": 1}]}


def test_what_has_no_form_is_refused() -> None:
    for value in (object(), {1, 2}, Outer):
        with pytest.raises(TypeError, match="no plain form"):
            to_json([value])


def test_what_is_kept_comes_back_exactly() -> None:
    value = Inner((("a", 0.5),), Fraction(2, 7))
    assert to_plain(value) == {"pairs": [["a", 0.5]], "exact": "2/7"}
    assert from_plain(Inner, json.loads(json.dumps(to_plain(value)))) == value
    with pytest.raises(Misfit):
        from_plain(Inner, {"pairs": [["a", "0.5"]], "exact": "2/7"})


def told() -> list[type[ToJson]]:
    """Return every class of the package with this JSON."""
    for module in pkgutil.walk_packages(veilog.__path__, "veilog."):
        if module.name.split(".")[1] in {"audits", "experiments", "logs", "measures", "privacy", "releasing"}:
            importlib.import_module(module.name)
    return [kind for kind in ToJson.__subclasses__() if kind is not Outer]


def test_every_class_says_what_can_be_told() -> None:
    kinds = told()
    assert len(kinds) >= 8
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):  # type: ignore[arg-type]
            for rule in get_args(hints[field.name]):
                if isinstance(rule, InJson):
                    assert all(hasattr(kind, name) for name in rule.then), (kind, field.name)
