"""Part D: a record for the OpenDP Deployments Registry, in the most complete of its three tiers, as YAML.

The keys and the values that may be chosen are those of the registry's schema of 2026. What only the publisher knows is
marked by a comment in the file.
"""

from __future__ import annotations

import re

from veilog._language import counted
from veilog._language import gettext as _
from veilog.privacy.account.guarantee import Guarantee
from veilog.report.dossier.parts import Code, DossierPart, Section, Text
from veilog.report.dossier.subject import Subject
from veilog.report.dossier.yaml import Yours, written
from veilog.report.explorer import clean

__all__ = ["SCHEMA", "record", "registry"]

_TO_FILL = "To be filled"
SCHEMA = "3e9c812a924cf01d228f26f6c462c59c391c3f2a"
"""The commit of opendp/deployments-registry-data (2026-07-15) whose schema the record follows."""


def registry(subject: Subject) -> DossierPart:
    """Return the part."""
    yaml = record(subject)
    if yaml is None:
        blocks: tuple[Text | Code, ...] = (
            Text(_("No: nothing is proven, so there is no differential privacy to register."), strong=True),
        )
    else:
        blocks = (
            Text(
                _(
                    "Fill what is marked, take a file name of lowercase letters, digits and underscores that ends in "
                    ".yaml, and run the registry's own checks before you send it."
                )
            ),
            Code(yaml),
        )
    return DossierPart(
        "D",
        _("For the registry of deployments"),
        _(
            "The OpenDP Deployments Registry lists where differential privacy is used, and how. This helps to "
            "fill a record of tier 3, its most complete, for its schema at commit {commit}.",
            commit=SCHEMA[:12],
        ),
        (Section("D.1", _("The record"), blocks),),
    )


def record(subject: Subject) -> str | None:
    """Return the record as YAML; None where nothing is proven."""
    g = subject.guarantee
    if not g.proven or g.epsilon is None:
        return None
    year = subject.written[:4]
    return written(
        {
            "url_slug": Yours(
                f"event-log-{_slug(subject.told.method)}-{year}", "name, publisher and year, with hyphens"
            ),
            "status": "Draft",
            "tier": 3,
            "deployment": {
                "basic": _basic(subject),
                "dp_variant": _variant(subject),
                "privacy_loss": _loss(subject),
                "deployment_model": _model(),
                "accounting": _accounting(),
                "implementation": _implementation(subject),
                "administrative": {
                    "sources": Yours(f"The dossier of the release. {_files(subject)}", "where it can be read"),
                    "notes": f"Written for the registry's schema at commit {SCHEMA}.",
                    "registry_authors": [Yours(_TO_FILL, "who fills this record")],
                },
            },
        }
    )


def _basic(subject: Subject) -> dict[str, object]:
    size = f"{counted(subject.cases, 'case')}, {counted(subject.events, 'event')} and "
    size += counted(subject.activities, "activity", "activities")
    more = f"{len(subject.attributes)} further {'attribute' if len(subject.attributes) == 1 else 'attributes'}"
    times = "with times" if subject.told.timed else "without times"
    return {
        "name": Yours("A released event log", "what you call it"),
        "data_curators": [
            Yours(_TO_FILL, "who publishes it"),
        ],
        "description": f"An event log of a process for process mining: {size}, {times}, with {more}. "
        "Cases are sequences of activities, made from noisy answers.",
        "intended_use": Yours(_TO_FILL, "e.g. process mining research"),
        "data_product_type": "Synthetic data",
        "data_product_region": Yours(_TO_FILL, "where the data are from, or whose law applies"),
        "publication_date": Yours(subject.written, "the day on which it is published"),
    }


def _variant(subject: Subject) -> dict[str, object]:
    g = subject.guarantee
    conditions = "\n".join(f"- {clean(str(condition.text))}" for condition in g.conditions)
    unprotected = conditions or "- None: activities were declared or found with noise."
    return {
        "variant_name": "Approximate DP" if g.delta else "Pure DP",
        "data_domain": "All event logs: finite multisets of cases, each a finite sequence of events with an activity"
        + (", a time" if subject.told.timed else "")
        + (", and attributes: " + ", ".join(map(clean, subject.attributes[:40])) if subject.attributes else "")
        + ".",
        "unprotected_quantities": "Public facts that the guarantee takes for granted:\n"
        f"{unprotected}\n- The method, its parameters and the software.",
    }


def _loss(subject: Subject) -> dict[str, object]:
    g = subject.guarantee
    parameters: dict[str, object] = {"epsilon": g.epsilon}
    if g.delta:
        parameters["delta"] = g.delta
    rise = "" if g.guessing_advantage is None else f" The guessing advantage is at most {g.guessing_advantage:.6g}."
    return {
        "privacy_unit": f"{clean(g.unit).capitalize()}-level",
        "privacy_unit_details": f"Adjacent datasets are {clean(str(g.neighbours))} (unbounded differential privacy).",
        "privacy_parameters": parameters,
        "privacy_parameters_details": f"{_split(subject)}{rise}",
    }


def _split(subject: Subject) -> str:
    parts = [f"{clean(o.target)}: epsilon {o.epsilon:.6g}, delta {o.delta:.6g}" for o in subject.told.operations[:40]]
    return ("The budget by operation: " + "; ".join(parts) + ".") if parts else "One budget for all questions."


def _model() -> dict[str, object]:
    return {
        "model_name": "Central",
        "model_name_details": "The owner of the log runs the mechanism on their own machine; only the release "
        "leaves it. The owner and that machine are trusted. Recipients are not: any knowledge beside, any computing "
        "power, at any time.",
        "actors": Yours(
            "- The owner of the log, who runs the mechanism.\n- Recipients, who may be adversaries.",
            "who else sees the log, or the release",
        ),
        "release_type": "One release",
        "release_type_details": Yours(
            "The full budget is spent on this release.", "further releases of these data, and what they may cost in all"
        ),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
        "access_type_details": "Recipients have a file, and cannot ask questions of the underlying data.",
    }


def _accounting() -> dict[str, object]:
    return {
        "post_processing": "The released cases are computed from noisy answers alone; case names are made anew and "
        "cases are in random order.",
        "composition": "Sequential (adaptive) composition within one budget: what all questions cost adds up to the "
        "parameters above. Releases of the same data add up in a ledger.",
    }


def _implementation(subject: Subject) -> dict[str, object]:
    told = subject.told
    return {
        "preprocessing_and_hyperparameter_tuning": Yours(
            "Each case is made to fit declared public facts by itself. Choices of the method that look at the data are "
            "questions with noise, and are accounted for.",
            "what was tried or looked at before, and whether the ledger has it",
        ),
        "mechanisms": _mechanisms(subject.guarantee)
        + f"- Software: {clean(told.software)}, method {clean(told.method)}.\n"
        "- Floating point: noise is drawn exactly, in whole numbers; budgets are exact fractions.\n"
        "- Timing: nothing is interactive; how long the run took is not released.\n"
        "- Randomness: the operating system's cryptographic source.",
        "justification": Yours(_TO_FILL, "why this budget, unit and method, and who decided"),
    }


def _mechanisms(g: Guarantee) -> str:
    named = list(dict.fromkeys(clean(str(charge.plain().mechanism)) for charge in g.charges))
    if not named:
        return "- Mechanisms: as the page of the method says; the file of the release does not list them.\n"
    return "".join(f"- {name}\n" for name in named[:20])


def _files(subject: Subject) -> str:
    return (
        "; ".join(f"{file.name}: SHA-256 {file.sha256}" for file in subject.files) or "Written by the software named."
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "release"
