"""Access of browsers to the server, and the forms and uploads that they send."""
