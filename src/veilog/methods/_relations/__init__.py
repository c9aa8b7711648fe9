"""Noisy directly-follows relations and traces played out from them."""

SACOFA_PAPER = (
    "Fahrenkrog-Petersen, Kabierski, van der Aa, Weidlich: Semantics-aware Mechanisms for Control-flow Anonymization "
    "in Process Mining (2023)"
)
"""The paper of SaCoFa, SaPa and the directly-follows baseline."""
