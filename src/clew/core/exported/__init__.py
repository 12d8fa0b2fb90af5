"""Exports: conversations as lines of JSON that can be verified without a store. Pure."""
