"""What an event log is, how it comes in and goes out."""
