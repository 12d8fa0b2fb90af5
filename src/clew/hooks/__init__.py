"""Hooks that plugins may implement, and the manager that calls them."""
