"""
One conversation's line of work, with something happening at each place where a turn waits.

A *world* is a real engine over a real store, with a model and tools that act in this process: a
test decides what happens at which moment, and nothing is timed.
"""
