"""Times of a release: starts and durations of cases, their steps, and processing."""
