"""JSON-RPC: methods and connections, over any transport."""
