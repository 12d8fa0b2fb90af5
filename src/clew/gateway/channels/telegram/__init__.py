"""Telegram: the Bot API."""
