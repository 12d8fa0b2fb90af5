"""
Killing processes at named points, and judging what came of it.

A *campaign* starts processes that run a real engine over a real store, kills each at one point,
lets the next one finish what is open, and judges by three logs that no kill can reach: the fake
provider's requests, the tools' effects, and what the fronts were told.
"""
