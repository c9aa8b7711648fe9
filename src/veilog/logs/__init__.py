"""Event logs: how they are held, read and written."""
