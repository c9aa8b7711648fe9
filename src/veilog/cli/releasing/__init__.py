"""The commands that choose and make a release or a model: suggest, twin, release, train, and drawing from a model."""
