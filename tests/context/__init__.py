"""Context of a conversation: histories, actions on them, a strict checker."""
