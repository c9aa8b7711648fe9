"""The record of a release for the registry: as its schema wants it, and read back as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_dossier import LOG, VARIANTS, hostile

import veilog
from veilog.errors import OutputError
from veilog.report.dossier import write_registry
from veilog.report.dossier.yaml import Yours, written

TEXT, WHOLE, NUMBER = "text", "whole", "number"
RECORD: dict[str, Any] = {
    "url_slug!": TEXT,
    "deployment!": {
        "basic!": {
            "name!": TEXT,
            "data_curators!": [
                {"data_curator_name!": TEXT, "data_curator_type!": {"Government", "Industry", "Nonprofit"}},
            ],
            "description!": TEXT,
            "intended_use!": TEXT,
            "data_product_type!": {
                *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
                *("Interactive API", "SQL queries"),
            },
            "data_product_region!": TEXT,
            "data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance"},
            "publication_date!": TEXT,
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "number_of_privacy_units": WHOLE,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "model_name_details": TEXT,
            "trust_assumptions": TEXT,
            "actors": TEXT,
            "release_type": {"One release", "Many releases"},
            "release_type_details": TEXT,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": TEXT,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": TEXT,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "composition": TEXT,
            "post_processing": TEXT,
            "justification": TEXT,
            "utility": TEXT,
            "additional_information": TEXT,
        },
        "administrative!": {
            "evidence_sources": {
                "dossier": {
                    "evidence_source_type": {"Authorized organizational attestation"},
                    "misc": {"title": TEXT, "year": WHOLE, "note": TEXT},
                }
            },
            "status!": {"Converted", "Draft", "Pending", "Changes Required", "Approved"},
            "registry_authors!": [TEXT],
            "tier!": {1, 2, 3},
        },
    },
}
"""Our own description of what the registry's schema (2026) lets a record have; "!" marks what it must have."""

TIER_3 = (
    *("dp_variant.data_domain", "dp_variant.unprotected_quantities", "privacy_loss.privacy_unit_details"),
    *("privacy_loss.privacy_parameters_details", "deployment_model.trust_assumptions", "deployment_model.actors"),
    *("deployment_model.release_type_details", "deployment_model.access_type_details"),
    *(f"implementation.{name}" for name in ("mechanisms", "composition", "post_processing", "justification")),
    "implementation.preprocessing_and_hyperparameter_tuning",
)


def misfits(value: Any, wanted: Any, path: str = "") -> list[str]:
    """Where a record is not as the schema wants it."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return [f"{path}: not a mapping"]
        keys = {key.rstrip("!"): kind for key, kind in wanted.items()}
        found = [f"{path}.{key}: unknown" for key in value if key not in keys]
        found += [f"{path}.{key[:-1]}: missing" for key in wanted if key.endswith("!") and key[:-1] not in value]
        return found + [fault for k, v in value.items() if k in keys for fault in misfits(v, keys[k], f"{path}.{k}")]
    if isinstance(wanted, list):
        if not isinstance(value, list) or not value:
            return [f"{path}: not a list"]
        return [fault for one in value for fault in misfits(one, wanted[0], path)]
    if isinstance(wanted, set):
        return [] if value in wanted else [f"{path}: {value!r}"]
    kind = {TEXT: str, WHOLE: int, NUMBER: (int, float)}[wanted]
    return [] if isinstance(value, kind) and not isinstance(value, bool) else [f"{path}: {value!r}"]


PURE = {"epsilon": 1, "activities": list(VARIANTS.labels), "depth": 4}


@pytest.mark.parametrize(
    "make",
    [
        lambda: veilog.release(VARIANTS, "laplace", **PURE),
        lambda: veilog.release(VARIANTS, "travas", epsilon="0.3", delta="1e-9"),
        hostile,
    ],
    ids=["pure", "delta", "hostile"],
)
def test_the_record_is_as_the_registry_wants_it(make: Callable[[], veilog.Release], tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    released = make()
    made = veilog.dossier(released)
    write_registry(made, tmp_path / "record.yaml")
    text = (tmp_path / "record.yaml").read_text()
    found = yaml.safe_load(text)
    assert misfits(found, RECORD) == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["deployment"]["basic"]["publication_date"])
    loss = found["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss["epsilon"] == released.guarantee.epsilon
    assert loss.get("delta", 0) == released.guarantee.delta
    variant = found["deployment"]["dp_variant"]["variant_name"]
    assert variant == ("Approximate DP" if released.guarantee.delta else "Pure DP")
    for path in TIER_3:
        group, _, name = path.partition(".")
        assert found["deployment"][group][name].strip(), path
    styles = {token.style for token in yaml.scan(text) if hasattr(token, "style")}
    assert styles <= {None, "|", '"', "'"}, "the registry takes no other way to quote"
    assert "# yours to fill" in text


def test_the_check_of_records_finds_faults() -> None:
    assert misfits({"url_slug": 1, "more": 2}, RECORD) == [
        ".more: unknown",
        ".deployment: missing",
        ".url_slug: 1",
    ]


def test_nothing_proven_is_not_registered(tmp_path: Path) -> None:
    unproven = veilog.release(LOG, "tlkc", as_published=True, k=5, l=2)
    with pytest.raises(OutputError, match="nothing to register"):
        write_registry(veilog.dossier(unproven), tmp_path / "record.yaml")
    assert list(tmp_path.iterdir()) == []


def test_yaml_is_read_back_as_it_was() -> None:
    yaml = pytest.importorskip("yaml")
    value: dict[str, object] = {"a": "yes", "b": "1e-6", "c": 1e-6, "d": 2.5e-30, "e": 1.0, "k": "ünï\u2019", "l": True}
    value |= {"f": "x: #y\n  - z\n\nlast", "g": [1, "two", {"h": "i", "j": [3]}], "m": "", "n": "- a\n- b"}
    value |= {"o": {"p": {"q": '"\\'}}}
    back = yaml.safe_load(written(value))
    assert back == value | {"f": "x: #y\n  - z\n\nlast\n", "n": "- a\n- b\n"}
    assert yaml.safe_load(written({"a": Yours("b", "say"), "c": [Yours("d\ne", "it")]})) == {"a": "b", "c": ["d\ne\n"]}
