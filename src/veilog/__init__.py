"""veilog: share event logs of a process without giving away the people in them.

>>> import veilog
>>> log = veilog.read("hospital.xes")                                       # doctest: +SKIP
>>> released = veilog.release(log, "travas", epsilon=1, delta=1e-6)         # doctest: +SKIP
>>> print(released.guarantee.in_words())                                    # doctest: +SKIP
>>> released.save("release.xes")                                            # doctest: +SKIP
>>> veilog.compare(log, released.variants).relative_log_similarity          # doctest: +SKIP
"""

from veilog._version import __version__
from veilog.errors import InputError, OutputError, ParameterError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read, read_variants, validate, write
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants
from veilog.measures.comparison import Comparison, compare
from veilog.measures.disclosure import RiskResult, risk
from veilog.methods import METHODS, Method
from veilog.privacy.domain import Domain
from veilog.privacy.guarantee import Charge, Guarantee
from veilog.releasing import Release, release

__all__ = [
    "METHODS",
    "Charge",
    "Comparison",
    "Domain",
    "EventLog",
    "Finding",
    "Guarantee",
    "InputError",
    "Method",
    "OutputError",
    "ParameterError",
    "Release",
    "RiskResult",
    "Variants",
    "VeilogError",
    "__version__",
    "compare",
    "read",
    "read_variants",
    "release",
    "risk",
    "validate",
    "write",
]
