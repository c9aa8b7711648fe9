"""The noised steps of a training, the sums of clipped gradients in integers, and what they cost together."""
