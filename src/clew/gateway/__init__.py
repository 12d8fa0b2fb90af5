"""Chat platforms: the channel contract, routing, delivery."""
