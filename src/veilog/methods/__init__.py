"""The methods: each a plain function of the curator, a request and its settings, registered in a line."""

from veilog.methods.method import Method
from veilog.methods.registry import METHODS, method_named
from veilog.methods.settings import Bounds, Parameter, Settings

__all__ = ["METHODS", "Bounds", "Method", "Parameter", "Settings", "method_named"]
