"""
Modules of Hermes Agent that its plugins import, with the parts that mean something in Clew.

Written for Clew. They are imported under the names that plugins use (``hermes_cli.config``), only
where plugins are enabled, and only if nothing else has such a name.
"""
