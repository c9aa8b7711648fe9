"""Training: models that are made from a log once and drawn from without it, their files and their checkpoints."""
