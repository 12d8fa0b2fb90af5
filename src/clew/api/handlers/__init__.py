"""Handlers of the operations, the same for HTTP and JSON-RPC."""
