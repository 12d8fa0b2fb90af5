"""Helpers of the tests of the session lifecycle contracts."""
