"""What the commands share: how logs are read, large ones and pipes too, where results go, and what people are shown."""
