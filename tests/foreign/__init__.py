"""Conversations of other systems for tests."""
