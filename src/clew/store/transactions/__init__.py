"""Domain transactions: functions over a transaction, with one SQL text for both databases."""
