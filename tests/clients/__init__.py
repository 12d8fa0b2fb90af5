"""Requests that other programs send, played against a gateway."""
