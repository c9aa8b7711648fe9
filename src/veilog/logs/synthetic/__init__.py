"""Synthetic logs: a small hospital of no real people, and logs of given sizes."""
