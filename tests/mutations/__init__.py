"""Safeguards that are taken out one by one: for each there is a test that must notice."""
