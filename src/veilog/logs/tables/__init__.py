"""Logs as tables: a module a format (CSV, Excel, Parquet, tables in memory), and what they share."""
