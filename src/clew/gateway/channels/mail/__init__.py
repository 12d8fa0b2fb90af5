"""The mail channel."""
