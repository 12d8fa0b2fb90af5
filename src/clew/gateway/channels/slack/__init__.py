"""Slack: socket mode and the web API."""
