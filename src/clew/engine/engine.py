"""
The engine: everything a front may ask for.

A front parses, calls one method here, and shows what comes back. The engine holds lifetimes and
owns no rule: rules are in ``clew.core``, what is stored is decided in ``clew.store.transactions``.
"""

from __future__ import annotations
