"""Discord: the gateway and the REST API."""
