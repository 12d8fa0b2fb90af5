"""The gateway as a service of the machine: its file, its process manager, its state."""
