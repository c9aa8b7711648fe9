"""Every measure by its name: our own, each imported when it is asked for, and those that other packages add."""

from __future__ import annotations

from veilog._plugins import Registry
from veilog.measures.measure import Measure, our_measures

MEASURES = Registry(Measure, "veilog.measures", {name: facts["at"] for name, facts in our_measures().items()})
"""In the order in which they are taken, and in which the reasons of those without a value stand."""
