"""Public test doubles and contract suites."""
