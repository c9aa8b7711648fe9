"""Logs as tables: one module per format, and the parts that formats share."""
