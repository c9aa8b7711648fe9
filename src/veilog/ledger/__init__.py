"""Ledger of the releases of a data set: a file that survives crashes and writers."""
