"""
Commands that run apart: levels of isolation, limits, and the folders that they work in.

Nothing here knows of conversations or models. A sandbox is a function from an argument vector to
another one, so that whatever starts a process can use it.
"""
