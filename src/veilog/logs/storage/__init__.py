"""Logs on disk, in pieces of whole cases."""
