"""Options of the commands, reading of logs and pipes, ledgers, and output."""
