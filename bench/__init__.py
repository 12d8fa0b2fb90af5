"""Measurements against the numbers to reach: ``make bench``, or ``python -m bench NAME ...``."""
