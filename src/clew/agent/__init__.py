"""Agent loop over steps, with models, tools and prompts; no SQL, no platform."""
