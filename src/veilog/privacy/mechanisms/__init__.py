"""Exact noise, its coins and samples, and the noised steps of a training."""
