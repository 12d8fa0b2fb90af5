"""Conversations, memory, skills and jobs of other systems, as they stored them."""
