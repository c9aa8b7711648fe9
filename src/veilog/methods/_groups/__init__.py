"""Group-based privacy, which TLKC and PRETSA share: sensitive values and what is checked before a release."""
