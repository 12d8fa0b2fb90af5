"""Checks of ``clew doctor``; each examines one thing and reports findings."""
