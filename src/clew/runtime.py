"""The composition root: settings become a running product."""
