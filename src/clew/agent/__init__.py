"""The loop over steps: models, tools and prompts; no SQL, no platform."""
