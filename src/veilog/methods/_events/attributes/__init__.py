"""Attributes of a release: their domains, associations, and values along a case."""
