"""Export format: conversations as JSON lines that can be verified without a store. Pure."""
