"""Webhook: signed HTTP in, signed HTTP out, for platforms without a channel of their own."""
