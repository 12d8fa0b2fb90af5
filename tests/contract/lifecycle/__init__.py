"""What the contracts of the session lifecycle are tested with."""
