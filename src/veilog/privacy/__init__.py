"""Trusted kernel: the only code that sees raw counts or draws noise."""
