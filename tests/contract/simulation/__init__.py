"""
Simulated owners over a real store: what they do, and what a small model says must come of it.

``sim`` holds the model and compares; the other modules hold the moves, by what they are about.
"""
