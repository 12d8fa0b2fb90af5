"""Public test doubles and contract suites."""

from __future__ import annotations

from clew.testing.provider import FakeProvider

__all__ = ["FakeProvider"]
