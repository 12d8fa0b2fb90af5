"""What an agent writes (Markdown), as messages of a platform; pure."""
