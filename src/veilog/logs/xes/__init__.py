"""XES (IEEE 1849): reading in parts and in parallel, writing legal files."""
