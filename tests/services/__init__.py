"""Process managers for the tests of services."""
