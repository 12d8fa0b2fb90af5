"""Editors: a client of Clew that speaks the Agent Client Protocol with an editor."""
