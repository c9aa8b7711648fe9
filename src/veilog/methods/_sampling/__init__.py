"""Cases that are replicated or left out, with noisy times, which Amun and Libra share."""
