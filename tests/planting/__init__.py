"""Stores in which everything was used once, and what can be wrong with them."""
