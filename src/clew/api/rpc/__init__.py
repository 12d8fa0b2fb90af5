"""JSON-RPC: connections and calls, over any transport."""
