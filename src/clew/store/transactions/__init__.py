"""The domain transactions: functions over a transaction, one SQL text for both."""
