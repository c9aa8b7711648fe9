"""Who is let in, and what comes in: forms and uploads."""
