"""Commands that a person types into a conversation: /new, /undo, /queue and more."""
