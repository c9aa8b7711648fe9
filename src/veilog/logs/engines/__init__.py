"""Logs that other programs hold: files and tables by DuckDB, Spark, anything that Ibis reaches."""
