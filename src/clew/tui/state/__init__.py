"""View state as values: events in, a view out; no screen, no connection."""

from __future__ import annotations
