"""The methods: each a plain function of the curator, a request and its settings, registered in a line.

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
from veilog.methods.settings import Bounds, Choices, LargestLog, Parameter, Settings

__all__ = [
    "METHODS",
    "Bounds",
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
    "Request",
    "Settings",
    "WholeLog",
    "method_named",
]
