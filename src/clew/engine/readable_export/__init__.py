"""Readable forms of an export: Markdown and HTML."""
