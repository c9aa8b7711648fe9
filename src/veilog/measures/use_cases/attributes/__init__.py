"""Attributes: what a release kept of their values, each by itself, in pairs, and beside the path of the case."""
