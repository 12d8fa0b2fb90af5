"""``clew`` on a terminal: the terminal UI, with a server or an engine of its own behind it."""
