"""``clew`` on a terminal: the terminal UI and its backend, a server or an embedded engine."""
