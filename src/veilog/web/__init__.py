"""``veilog serve``: the same work in a browser, on one's own machine.

The server keeps files and a queue; it never reads a log. Whatever touches data runs in worker processes.
"""
