"""Pages: filled-in templates, and the words on them."""
