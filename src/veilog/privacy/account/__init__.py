"""Charges, their composition, the guarantee that follows, and its words."""
