"""Sandboxes for tests: those that CI must have, and others only where they work."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.policy import CommandLimits, SandboxRequest, find_python

if TYPE_CHECKING:
    from pathlib import Path

#: Where there is none, a test is skipped; CI installs it.
needs_bubblewrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and not os.environ.get("CI"),
    reason="bubblewrap is not installed (apt install bubblewrap)",
)


def make_bubblewrap(folder: Path) -> BubblewrapSandbox:
    return BubblewrapSandbox(folder / "work")


def make_request(folder: Path, **limits: float) -> SandboxRequest:
    """A request in a workspace of its own, at small limits."""
    small = CommandLimits(memory=256 * 2**20, processes=32, seconds=60, output=10_000, disk=2**26)
    return SandboxRequest(
        workspace=folder / "work" / "local",
        limits=replace(small, **limits),  # pyright: ignore[reportArgumentType]
        readable=find_python().readable,
    )
