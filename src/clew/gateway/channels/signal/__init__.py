"""The Signal channel, through the daemon of signal-cli."""
