"""The rules of a conversation, without I/O: facts in, decisions out."""
