"""Synthetic logs: a small hospital of no real people, and logs of the size of another."""
