"""JSON-RPC framing, methods and events, without I/O."""
