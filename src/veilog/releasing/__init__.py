"""Way from a request to a release: refusals, queries, results and suggestions."""
