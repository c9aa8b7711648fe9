"""Pages: templates filled in, and the words on them."""
