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
    from veilog import report as report
    from veilog.audits.blackbox import audit as audit
    from veilog.audits.bounds import AuditResult as AuditResult
    from veilog.errors import BudgetError as BudgetError
    from veilog.errors import EmptyReleaseError as EmptyReleaseError
    from veilog.errors import InputError as InputError
    from veilog.errors import OutputError as OutputError
    from veilog.errors import ParameterError as ParameterError
    from veilog.errors import UndeclaredError as UndeclaredError
    from veilog.errors import VeilogError as VeilogError
    from veilog.experiments.benchmark import Benchmark as Benchmark
    from veilog.experiments.benchmark import benchmark as benchmark
    from veilog.ledger.accounts import Account as Account
    from veilog.ledger.ledger import Ledger as Ledger
    from veilog.logs.eventlog import EventLog as EventLog
    from veilog.logs.files import read as read
    from veilog.logs.files import read_variants as read_variants
    from veilog.logs.files import validate as validate
    from veilog.logs.files import write as write
    from veilog.logs.findings import Finding as Finding
    from veilog.logs.variants import Variants as Variants
    from veilog.measures import Comparison as Comparison
    from veilog.measures import compare as compare
    from veilog.measures.disclosure import RiskResult as RiskResult
    from veilog.measures.disclosure import risk as risk
    from veilog.methods import METHODS as METHODS
    from veilog.methods import Method as Method
    from veilog.privacy.account.guarantee import Charge as Charge
    from veilog.privacy.account.guarantee import Condition as Condition
    from veilog.privacy.account.guarantee import Guarantee as Guarantee
    from veilog.privacy.domain import Domain as Domain
    from veilog.releasing.model import ReleaseModel as ReleaseModel
    from veilog.releasing.preview import Expected as Expected
    from veilog.releasing.preview import Twin as Twin
    from veilog.releasing.preview import twin as twin
    from veilog.releasing.request import ReleaseRequest as ReleaseRequest
    from veilog.releasing.request import plan as plan
    from veilog.releasing.result import OwnerOnly as OwnerOnly
    from veilog.releasing.result import Release as Release
    from veilog.releasing.run import release as release
    from veilog.releasing.suggest import Suggestion as Suggestion
    from veilog.releasing.suggest import suggest as suggest
    from veilog.report.dossier import dossier as dossier
    from veilog.training import Model as Model
    from veilog.training import train as train

_HOMES = {
    name: module
    for module, names in {
        "veilog.audits.blackbox": ("audit",),
        "veilog.audits.bounds": ("AuditResult",),
        "veilog.errors": (
            "BudgetError",
            "EmptyReleaseError",
            "InputError",
            "OutputError",
            "ParameterError",
            "UndeclaredError",
            "VeilogError",
        ),
        "veilog.experiments.benchmark": ("Benchmark", "benchmark"),
        "veilog.ledger.ledger": ("Account", "Ledger"),
        "veilog.logs.eventlog": ("EventLog",),
        "veilog.logs.files": ("read", "read_variants", "validate", "write"),
        "veilog.logs.findings": ("Finding",),
        "veilog.logs.variants": ("Variants",),
        "veilog.measures": ("Comparison", "compare"),
        "veilog.measures.disclosure": ("RiskResult", "risk"),
        "veilog.methods": ("METHODS", "Method"),
        "veilog.privacy.account.guarantee": ("Charge", "Condition", "Guarantee"),
        "veilog.privacy.domain": ("Domain",),
        "veilog.releasing.model": ("ReleaseModel",),
        "veilog.releasing.preview": ("Expected", "Twin", "twin"),
        "veilog.releasing.request": ("ReleaseRequest", "plan"),
        "veilog.releasing.result": ("OwnerOnly", "Release"),
        "veilog.releasing.run": ("release",),
        "veilog.releasing.suggest": ("Suggestion", "suggest"),
        "veilog.report.dossier": ("dossier",),
        "veilog.training": ("Model", "train"),
    }.items()
    for name in names
}
"""Module of each public name, imported at first use, so that ``import veilog`` is fast."""
__all__ = [*sorted([*_HOMES, "report"]), "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "report":
        return importlib.import_module("veilog.report")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
