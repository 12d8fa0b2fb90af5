"""Built-in plugins; they use hooks only."""
