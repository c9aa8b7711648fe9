"""Jobs: a queue, the worker processes for it, and the store of their results."""
