"""The risk of a log: what somebody who knows a little of a person learns of them."""

from veilog.measures.disclosure.estimate import Matcher
from veilog.measures.disclosure.measure import (
    BACKGROUNDS,
    EXPLAINED,
    KNOWN,
    Background,
    RiskResult,
    Risks,
    risk,
    unique_cases,
)
from veilog.measures.disclosure.perspectives import UNITS
from veilog.measures.disclosure.uniqueness import uniqueness

__all__ = [
    "BACKGROUNDS",
    "EXPLAINED",
    "KNOWN",
    "UNITS",
    "Background",
    "Matcher",
    "RiskResult",
    "Risks",
    "risk",
    "unique_cases",
    "uniqueness",
]
