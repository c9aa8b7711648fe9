"""How good a model discovered from a release is on the original log."""
