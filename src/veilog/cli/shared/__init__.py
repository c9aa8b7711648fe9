"""What the commands share: how logs are read, large ones and pipes too, what may be spent and is public, where results
go, and what people are shown."""
