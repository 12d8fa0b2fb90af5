"""Checks of a stored database: each sentence that has to hold, and how it is made to hold again."""
