"""What a release says of single people: those who are told apart in it."""
