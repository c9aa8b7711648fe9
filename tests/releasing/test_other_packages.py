"""Releases by a method of another package, and by one that breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods import METHODS
from veilog.privacy.curator import Curator
from veilog.releasing.request import plan

CODE = "method-of-another-package"


def by(run: Callable[[Curator, Any, Any], Any], package: str = "mine 1.0") -> Any:
    planned = plan("laplace", epsilon=1, activities="log", depth=3)
    return replace(planned, method=replace(METHODS["laplace"], package=package, run=run))


def as_ours(curator: Curator, request: Any, settings: Any) -> Any:
    return METHODS["laplace"].run(curator, request, settings)


def of_a_person(curator: Curator, request: Any, settings: Any) -> Variants:
    as_ours(curator, request, settings)
    raise ValueError("case of patient Meier")


def of_a_dict(curator: Curator, request: Any, settings: Any) -> Any:
    as_ours(curator, request, settings)
    return {}


def test_that_it_goes_round_nothing_is_that_package_s_word() -> None:
    log = hospital(60, seed=1)
    conditions = by(as_ours).run(log).guarantee.conditions
    (theirs,) = [condition for condition in conditions if condition.code == CODE]
    assert theirs.text == Message("method-of-another-package", method="laplace", package="mine 1.0")
    assert all(condition.code != CODE for condition in by(as_ours, "").run(log).guarantee.conditions)


@pytest.mark.parametrize(
    ("run", "said"), [(of_a_person, "failed (ValueError)"), (of_a_dict, "released dict, which is no log")]
)
def test_one_that_breaks_is_named_without_its_words_and_what_it_asked_is_spent(
    tmp_path: Path, run: Callable[[Curator, Any, Any], Any], said: str
) -> None:
    log, ledger = hospital(60, seed=1), Ledger.open(tmp_path / "l.ledger", create=True)
    with refused(ParameterError, "method-external-failed") as raised:
        by(run).run(log, ledger=ledger)
    assert said in str(raised.value) and "Meier" not in str(raised.value)
    (account,) = ledger.show()
    assert account.spent is not None and account.spent[0] == 1


def test_a_method_of_ours_that_breaks_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="Meier"):
        by(of_a_person, "").run(hospital(60, seed=1))
