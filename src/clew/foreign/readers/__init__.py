"""One module per system that people move from."""
