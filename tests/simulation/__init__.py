"""
Deterministic simulation: gateways over one store under one seeded scheduler.

The engines, the turns and the SQL of every transaction are the product's own. Simulated are time,
the order of what is ready, processes, the network, the provider, and what a store does beside
running a transaction: delay, loss, notification. Nothing here starts a thread or waits for a clock.
``python -m tests.simulation --seed N`` repeats one seed.
"""
