"""veilog: share event logs of a process without giving away the people in them.

>>> import veilog
>>> log = veilog.read("hospital.xes")                                       # doctest: +SKIP
>>> released = veilog.release(log, "travas", epsilon=1, delta=1e-6)         # doctest: +SKIP
>>> print(released.guarantee.in_words())                                    # doctest: +SKIP
>>> released.save("release.xes")                                            # doctest: +SKIP
>>> veilog.compare(log, released.variants).relative_log_similarity          # doctest: +SKIP
"""

from veilog import report
from veilog._version import __version__
from veilog.audit.auditing import AuditResult, audit
from veilog.errors import BudgetError, InputError, OutputError, ParameterError, UndeclaredError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read, read_variants, validate, write
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants
from veilog.measures.comparison import Comparison, compare
from veilog.measures.disclosure import RiskResult, risk
from veilog.methods import METHODS, Method
from veilog.privacy.domain import Domain
from veilog.privacy.guarantee import Charge, Condition, Guarantee
from veilog.privacy.ledger import Account, Ledger
from veilog.released import OwnerOnly
from veilog.releasing import Release, release
from veilog.suggesting import Suggestion, suggest
from veilog.training.model import Model
from veilog.training.training import train

__all__ = [
    "METHODS",
    "Account",
    "AuditResult",
    "BudgetError",
    "Charge",
    "Comparison",
    "Condition",
    "Domain",
    "EventLog",
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
    "RiskResult",
    "Suggestion",
    "UndeclaredError",
    "Variants",
    "VeilogError",
    "__version__",
    "audit",
    "compare",
    "read",
    "read_variants",
    "release",
    "report",
    "risk",
    "suggest",
    "train",
    "validate",
    "write",
]
