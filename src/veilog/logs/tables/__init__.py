"""Logs as tables: CSV, Parquet, pandas; their columns, times and checks."""
