"""HTTP: OpenAI-compatible, REST, events, metrics."""
