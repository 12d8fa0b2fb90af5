"""Clew: an agent gateway that cannot lose, double or scramble a conversation."""
