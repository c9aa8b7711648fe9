"""Disclosure risk of a log for persons of whom an attacker knows a little."""

from veilog.measures.disclosure.estimate import uniqueness
from veilog.measures.disclosure.measure import RiskResult, Risks, risk, unique_cases

__all__ = ["RiskResult", "Risks", "risk", "unique_cases", "uniqueness"]
