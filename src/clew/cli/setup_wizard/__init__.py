"""Setup wizard: choose a model that answers, and write the settings."""
