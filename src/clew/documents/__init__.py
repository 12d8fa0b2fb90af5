"""Documents as text, made by programs that have limits."""
