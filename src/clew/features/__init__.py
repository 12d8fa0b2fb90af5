"""Default plugins; they use hooks only."""
