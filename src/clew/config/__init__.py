"""Settings: read once, at the rim, into a frozen object."""
