"""Conformance: what a model says of a release and of its original, and the readers of such models."""

from veilog.measures.purposes.conformance.declare import Constraint, held, mined
from veilog.measures.purposes.conformance.nets import Language, Net, Transition
from veilog.measures.purposes.conformance.purpose import CONFORMANCE, conformance_rate, support_error
from veilog.measures.purposes.conformance.reading import Model, read_model

__all__ = [
    "CONFORMANCE",
    "Constraint",
    "Language",
    "Model",
    "Net",
    "Transition",
    "conformance_rate",
    "held",
    "mined",
    "read_model",
    "support_error",
]
