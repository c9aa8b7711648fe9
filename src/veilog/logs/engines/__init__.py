"""Logs that other programs hold: in DuckDB, Spark, and whatever Ibis reaches."""
