"""The domain transactions: synchronous functions over a transaction, one SQL text for both databases."""
