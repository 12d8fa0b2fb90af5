"""What a model is sent of a conversation: histories, what is done to them, a strict checker."""
