"""Answers of every HTTP route and every RPC method, as clients see them."""
