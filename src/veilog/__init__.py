"""veilog: share event logs of a process without giving away the people in them.

>>> import veilog
>>> log = veilog.read("hospital.xes")                                       # doctest: +SKIP
>>> released = veilog.release(log, "travas", epsilon=1, delta=1e-6)         # doctest: +SKIP
>>> print(released.guarantee.in_words())                                    # doctest: +SKIP
>>> released.save("release.xes")                                            # doctest: +SKIP
>>> veilog.compare(log, released.variants).relative_log_similarity          # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from veilog._version import __version__

if TYPE_CHECKING:
    from veilog import report
    from veilog.audits.auditing import audit
    from veilog.audits.results import AuditResult
    from veilog.errors import (
        BudgetError,
        EmptyReleaseError,
        InputError,
        OutputError,
        ParameterError,
        UndeclaredError,
        VeilogError,
    )
    from veilog.experiments.benchmark import Benchmark, benchmark
    from veilog.ledger.accounts import Account
    from veilog.ledger.ledger import Ledger
    from veilog.logs.eventlog import EventLog
    from veilog.logs.files import read, read_variants, validate, write
    from veilog.logs.findings import Finding
    from veilog.logs.variants import Variants
    from veilog.measures import Comparison, compare
    from veilog.measures.disclosure import RiskResult, risk
    from veilog.methods import METHODS, Method
    from veilog.privacy.account.guarantee import Charge, Condition, Guarantee
    from veilog.privacy.domain import Domain
    from veilog.releasing.preview import Expected
    from veilog.releasing.request import ReleaseRequest, plan
    from veilog.releasing.result import OwnerOnly, Release
    from veilog.releasing.run import release
    from veilog.releasing.suggest import Suggestion, suggest
    from veilog.releasing.twin import Twin, twin
    from veilog.report.dossier import dossier
    from veilog.training.model import Model
    from veilog.training.training import train

__all__ = [
    "METHODS",
    "Account",
    "AuditResult",
    "Benchmark",
    "BudgetError",
    "Charge",
    "Comparison",
    "Condition",
    "Domain",
    "EmptyReleaseError",
    "EventLog",
    "Expected",
    "Finding",
    "Guarantee",
    "InputError",
    "Ledger",
    "Method",
    "Model",
    "OutputError",
    "OwnerOnly",
    "ParameterError",
    "Release",
    "ReleaseRequest",
    "RiskResult",
    "Suggestion",
    "Twin",
    "UndeclaredError",
    "Variants",
    "VeilogError",
    "__version__",
    "audit",
    "benchmark",
    "compare",
    "dossier",
    "plan",
    "read",
    "read_variants",
    "release",
    "report",
    "risk",
    "suggest",
    "train",
    "twin",
    "validate",
    "write",
]

_HOMES = {
    "Account": "veilog.ledger.ledger",
    "AuditResult": "veilog.audits.results",
    "Benchmark": "veilog.experiments.benchmark",
    "BudgetError": "veilog.errors",
    "Charge": "veilog.privacy.account.guarantee",
    "Comparison": "veilog.measures",
    "Condition": "veilog.privacy.account.guarantee",
    "Domain": "veilog.privacy.domain",
    "EmptyReleaseError": "veilog.errors",
    "EventLog": "veilog.logs.eventlog",
    "Expected": "veilog.releasing.preview",
    "Finding": "veilog.logs.findings",
    "Guarantee": "veilog.privacy.account.guarantee",
    "InputError": "veilog.errors",
    "Ledger": "veilog.ledger.ledger",
    "METHODS": "veilog.methods",
    "Method": "veilog.methods",
    "Model": "veilog.training.model",
    "OutputError": "veilog.errors",
    "OwnerOnly": "veilog.releasing.result",
    "ParameterError": "veilog.errors",
    "ReleaseRequest": "veilog.releasing.request",
    "Release": "veilog.releasing.result",
    "RiskResult": "veilog.measures.disclosure",
    "Suggestion": "veilog.releasing.suggest",
    "Twin": "veilog.releasing.twin",
    "UndeclaredError": "veilog.errors",
    "Variants": "veilog.logs.variants",
    "VeilogError": "veilog.errors",
    "audit": "veilog.audits.auditing",
    "benchmark": "veilog.experiments.benchmark",
    "compare": "veilog.measures",
    "dossier": "veilog.report.dossier",
    "plan": "veilog.releasing.request",
    "read": "veilog.logs.files",
    "read_variants": "veilog.logs.files",
    "release": "veilog.releasing.run",
    "risk": "veilog.measures.disclosure",
    "suggest": "veilog.releasing.suggest",
    "train": "veilog.training.training",
    "twin": "veilog.releasing.twin",
    "validate": "veilog.logs.files",
    "write": "veilog.logs.files",
}
"""Where each public name lives: it is imported when it is first used, so that ``import veilog`` takes no second."""


def __getattr__(name: str) -> Any:
    if name == "report":
        return importlib.import_module("veilog.report")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
