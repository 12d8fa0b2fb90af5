"""Runs of the AG-UI protocol, over the same inputs, turns and entries."""
