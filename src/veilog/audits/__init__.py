"""Attacks on releases: how much of an epsilon can be seen from outside."""
