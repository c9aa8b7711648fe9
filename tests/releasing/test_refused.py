"""What is given wrongly in Python is an error of ours, with what was meant, before anything is asked or written."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import veilog
import veilog.report
from veilog.logs.made_up.simulate import hospital
from veilog.logs.variants import Variants
from veilog.methods.evolve.remarks import remark_real
from veilog.methods.method import Request
from veilog.report.stated import stated

LOG = hospital(30, seed=1)
RELEASED = veilog.release(LOG, "laplace", epsilon=1, depth=2, activities="log", seed=1)
LAPLACE: dict[str, Any] = {"method": "laplace", "epsilon": 1, "depth": 2, "activities": "log"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: veilog.validate("log.xes", actvity="a"),
            "validate has no argument 'actvity'. Did you mean 'activity'",
        ),
        (lambda: veilog.risk(LOG, size=None), "A size is a whole number from 1 on, not None"),
        (lambda: veilog.risk(LOG, size=1.5), "A size is a whole number from 1 on, not 1.5"),
        (lambda: veilog.risk(LOG, background=3), "There is no background 3. Take set, multiset, sequence"),
        (lambda: RELEASED.save(None), "A file is named by its path, and not by None"),
        (lambda: veilog.write("x.xes", LOG), r"not by a value of type EventLog. .*write\(log, path\)"),
        (
            lambda: veilog.release(LOG, ledger=3, **LAPLACE),
            "A file is named by its path, and not by a value of type int",
        ),
        (
            lambda: veilog.suggest(LOG, epsilon=1, ledger=3),
            "A file is named by its path, and not by a value of type int",
        ),
        (lambda: veilog.read("log.xes", map=3), "A file is named by its path, and not by a value of type int"),
        (lambda: LOG.head("a"), "How many events is a whole number, not 'a'"),
        (lambda: veilog.Variants.from_dict({("a", None): 3}), "An activity is named by text, not by None"),
        (lambda: veilog.compare(LOG, LOG, model_seconds=-1), "model_seconds is a number above 0, not -1"),
        (lambda: veilog.compare(LOG, LOG, models="pm4yp"), "not 'pm4yp'. Did you mean 'pm4py'"),
        (lambda: veilog.report.write(RELEASED, "r.pdf"), "A report is an HTML page; its file must end in .html"),
        (lambda: veilog.release(LOG, unit="person", **LAPLACE), "bound on the cases of one. Take what most of them"),
    ],
)
def test_what_cannot_be_meant_is_told(
    wrong: Callable[[], object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    veilog.write(LOG, "log.xes")
    with pytest.raises(veilog.VeilogError, match=said):
        wrong()
    assert [path.name for path in tmp_path.iterdir()] == ["log.xes"]


@pytest.mark.parametrize(
    ("real", "said"),
    [
        (
            {("a",): 9},
            "With a delta, 1 of the released variants is certain to be real, for 9 cases: it occurs in the log. No "
            "other released variant has more than 3 cases.",
        ),
        (
            {("a",): 9, ("b",): 5},
            "With a delta, 2 of the released variants are certain to be real, for 14 cases: each of them occurs in the "
            "log. All released variants of more than 3 cases are among them.",
        ),
    ],
)
def test_one_variant_is_one(real: dict[tuple[str, ...], int], said: str) -> None:
    remarks: list[str] = []
    request = Request(
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        as_published=False,
        progress=lambda text, fraction: None,
        score=lambda original, released: 0.0,
        remark=remarks.append,
    )
    remark_real(request, Variants.from_dict(real | {("c",): 3}), Variants.from_dict(real))
    assert remarks == [said]
    assert stated(said) == said
