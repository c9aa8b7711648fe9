"""``veilog serve``: the same work in a browser, on the user's own machine.

The server keeps files and a queue; it never reads a log. Only worker processes touch data.
"""
