"""Input of logs: sources that are opened once, readers of formats, and columns."""
