"""Checks of a stored database: its invariants, and how violations are repaired."""
