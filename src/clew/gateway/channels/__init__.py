"""One package per chat platform."""
