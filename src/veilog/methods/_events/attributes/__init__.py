"""The attributes of a release: which values, how they hang together, and how they last along a case."""
