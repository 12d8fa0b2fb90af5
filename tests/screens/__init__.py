"""Several screens on one conversation, of a server that is killed and started again."""
