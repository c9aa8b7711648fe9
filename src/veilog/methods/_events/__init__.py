"""Cases, times and attributes of a released event log, from released variants."""
