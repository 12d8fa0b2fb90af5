"""Tables of voice."""
