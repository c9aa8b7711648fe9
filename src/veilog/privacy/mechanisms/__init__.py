"""Exact noise: probabilities as intervals, coins, discrete Laplace and Gaussian numbers, Poisson samples; and the
noised steps of a training, whose clipped gradients are summed in integers."""
