"""JSON-RPC: the methods, and the clients that call them, over any transport."""
