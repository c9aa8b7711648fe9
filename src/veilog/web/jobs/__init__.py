"""Jobs: a queue, the worker processes that it is handed to, and the store of what came of them."""
