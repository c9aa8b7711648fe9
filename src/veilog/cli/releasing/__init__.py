"""The commands that choose and make a release or a model, and their options: what may be spent, what is released."""
