"""The first run: a model that answers, and the settings that name it."""
