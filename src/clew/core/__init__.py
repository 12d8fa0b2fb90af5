"""Pure conversation rules: facts in, decisions out, no I/O."""
