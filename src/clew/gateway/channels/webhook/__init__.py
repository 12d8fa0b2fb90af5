"""Webhook: signed HTTP in, signed HTTP out, for whatever has no channel of its own."""
