"""A gateway on fake platforms, in the process of the test."""
