"""Rendering of an agent's Markdown for chat platforms; pure."""
