"""Helpers of the tests of the terminal UI."""

from __future__ import annotations
