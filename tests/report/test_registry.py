"""The registry's record of a release fits its schema, and is read back the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from refusals import refused
from test_dossier import LOG, VARIANTS, hostile

import veilog
from veilog.errors import OutputError
from veilog.report.dossier import SCHEMA, write_registry

TIER_3 = (
    *("dp_variant.data_domain", "dp_variant.unprotected_quantities", "privacy_loss.privacy_unit_details"),
    *("privacy_loss.privacy_parameters_details", "deployment_model.model_name_details", "deployment_model.actors"),
    *("deployment_model.release_type_details", "deployment_model.access_type_details"),
    *("accounting.composition", "accounting.post_processing"),
    *("implementation.mechanisms", "implementation.justification"),
    "implementation.preprocessing_and_hyperparameter_tuning",
)


@pytest.fixture(scope="module")
def schema() -> Any:
    """Return the registry's own schema, in the folder that VEILOG_REGISTRY names."""
    folder = os.environ.get("VEILOG_REGISTRY")
    if not folder:
        pytest.skip("VEILOG_REGISTRY names no folder with the registry's schema")
    assert SCHEMA in (Path(folder) / "README.md").read_text(), "the record names the commit that it was made for"
    found = yaml.safe_load((Path(folder) / "deployments-schema.yaml").read_text())
    return jsonschema.Draft7Validator(found, format_checker=jsonschema.FormatChecker())


PURE = {"epsilon": 1, "activities": list(VARIANTS.labels), "depth": 4}


MADE = pytest.mark.parametrize(
    "make",
    [
        lambda: veilog.release(VARIANTS, "laplace", **PURE),
        lambda: veilog.release(VARIANTS, "travas", epsilon="0.3", delta="1e-9"),
        hostile,
    ],
    ids=["pure", "delta", "hostile"],
)


@MADE
def test_the_record_fits_the_schema_of_the_registry(make: Callable[[], veilog.Release], schema: Any) -> None:
    record = yaml.safe_load(veilog.dossier(make()).registry or "")
    assert [(list(fault.path), fault.message) for fault in schema.iter_errors(record)] == []
    assert [*schema.iter_errors({**record, "deployment": {}})], "a record without its parts does not fit"


@MADE
def test_the_record_says_what_the_release_guarantees(make: Callable[[], veilog.Release], tmp_path: Path) -> None:
    released = make()
    made = veilog.dossier(released)
    write_registry(made, tmp_path / "record.yaml")
    text = (tmp_path / "record.yaml").read_text()
    found = yaml.safe_load(text)
    assert (found["status"], found["tier"]) == ("Draft", 3)
    assert SCHEMA in found["deployment"]["administrative"]["notes"]
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
    assert text.count("  # ") > 9, "what only the publisher knows is marked"


def test_nothing_proven_is_not_registered(tmp_path: Path) -> None:
    unproven = veilog.release(LOG, "tlkc", as_published=True, k=5, l=2)
    with refused(OutputError, "dossier-nothing-proven"):
        write_registry(veilog.dossier(unproven), tmp_path / "record.yaml")
    assert list(tmp_path.iterdir()) == []
