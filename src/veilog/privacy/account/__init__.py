"""Charges, what they add up to, the guarantee that is derived from them, and its figures in words."""
