"""
Supervisor of one command: a small process that outlives the gateway that started it.

It runs as ``python -I -S start.py`` and imports little, so that three hundred of them fit. Modules
that it uses import neither ``dataclasses`` nor ``pathlib``.
"""
