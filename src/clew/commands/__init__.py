"""Chat commands: the table, the handlers and the sentences of their replies."""
