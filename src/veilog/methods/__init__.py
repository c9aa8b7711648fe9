"""Methods, each a plain function of the curator, a request and its settings.

What a method in another package needs is here: :class:`Method` and its parts, :class:`Settings` and :class:`Request`.
"""

from veilog.methods.method import (
    DeltaOptional,
    Epsilon,
    EpsilonAndDelta,
    Groups,
    Method,
    NoEpsilon,
    OfVariants,
    Request,
    WholeLog,
)
from veilog.methods.registry import METHODS, method_named
from veilog.methods.settings import Choices, LargestLog, Parameter, Range, Settings

__all__ = [
    "METHODS",
    "Choices",
    "DeltaOptional",
    "Epsilon",
    "EpsilonAndDelta",
    "Groups",
    "LargestLog",
    "Method",
    "NoEpsilon",
    "OfVariants",
    "Parameter",
    "Range",
    "Request",
    "Settings",
    "WholeLog",
    "method_named",
]
