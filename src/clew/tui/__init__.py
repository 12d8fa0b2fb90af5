"""Terminal UI: a client of the protocol in ``clew.wire``."""
