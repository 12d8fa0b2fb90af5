"""Responses and conversations in OpenAI's format, over the same inputs, turns and entries."""
