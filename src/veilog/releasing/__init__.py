"""From a request to a release: what is refused, what is asked, what is given away, and what to choose."""
