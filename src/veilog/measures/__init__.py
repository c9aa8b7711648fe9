"""Measures of what a release keeps of its original and of what a log reveals.

Each module holds one measure; ``MEASURES`` lists them all.
"""

from veilog.measures.comparison import Comparison, compare, verdict_of
from veilog.measures.measure import MEASURES, Found, Measure, Pair, Progress, Quantity
from veilog.measures.use_cases import UseCaseOptions

__all__ = [
    "MEASURES",
    "Comparison",
    "Found",
    "Measure",
    "Pair",
    "Progress",
    "Quantity",
    "UseCaseOptions",
    "compare",
    "verdict_of",
]
