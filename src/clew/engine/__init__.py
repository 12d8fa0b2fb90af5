"""Use cases that the fronts call, implemented over the store and the agent."""
