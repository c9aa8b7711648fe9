"""Which method fits a log: by public facts, by a few noisy answers, and by what was measured on public logs."""
