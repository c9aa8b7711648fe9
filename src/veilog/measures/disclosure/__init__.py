"""The risk of a log: what somebody who knows a little of a person learns of them."""

from veilog.measures.disclosure.estimate import uniqueness
from veilog.measures.disclosure.measure import RiskResult, Risks, risk, unique_cases

__all__ = ["RiskResult", "Risks", "risk", "unique_cases", "uniqueness"]
