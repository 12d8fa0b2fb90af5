"""The terminal UI: a client of the protocol in wire."""
