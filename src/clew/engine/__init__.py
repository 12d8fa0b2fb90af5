"""Use cases: what a front asks for, carried out over the store and the agent."""
