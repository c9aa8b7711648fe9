"""From released variants to a released event log: its cases, their times and their attributes."""
