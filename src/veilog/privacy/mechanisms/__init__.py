"""Exact noise: probabilities as intervals, coins, discrete Laplace and Gaussian numbers, Poisson samples."""
