"""Prefix trees with noisy counts, which the Laplace baseline and SaCoFa share."""
