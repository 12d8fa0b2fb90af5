"""Files that the real programs of other systems wrote; each folder says which version."""
