"""What a release kept of its original, and what a log tells about people: one measure a module, all in ``MEASURES``."""

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
