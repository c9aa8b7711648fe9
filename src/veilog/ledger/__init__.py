"""The ledger: what the releases of a data set cost together, in a file that survives crashes and many writers."""
