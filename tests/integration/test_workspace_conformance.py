"""The conformance suite of the model library's workspaces, on our sandboxes."""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from clew.sandbox.landlock import LandlockSandbox
from clew.sandbox.unconfined import UnconfinedHost
from tests.sandbox_backend import SandboxBackend
from tests.sandboxes import make_bubblewrap, make_request, needs_bubblewrap, needs_landlock
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef

    from clew.sandbox.protocol import Sandbox

#: What ``make soak workspaces`` runs; the suite runs the first, without the longest rule.
LEVELS = {"bubblewrap": needs_bubblewrap, "landlock": needs_landlock, "host": ()}
_CHOSEN = os.environ.get("CLEW_WORKSPACE_LEVEL")


def _make_sandbox(name: str, folder: Path) -> Sandbox:
    match name:
        case "bubblewrap":
            return make_bubblewrap(folder)
        case "landlock":
            return LandlockSandbox()
        case _:
            return UnconfinedHost()


def _find_processes(mark: str) -> list[str]:
    """Return the processes of this machine with a text in their arguments."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


class TestSandboxes(WorkspaceBackendSuite):
    """Every rule, at a level that has a workspace to write in."""

    @pytest.fixture(
        params=[pytest.param(_CHOSEN or "bubblewrap", marks=LEVELS[_CHOSEN or "bubblewrap"])]
    )
    def make_backend(
        self, request: pytest.FixtureRequest, tmp_path: Path
    ) -> Callable[..., SandboxBackend]:
        def make(ref: WorkspaceRef | None = None) -> SandboxBackend:
            level = "host" if request.param == "host" else "work"
            asked = replace(make_request(tmp_path), level=level)
            return SandboxBackend(_make_sandbox(request.param, tmp_path), asked, ref)

        return make

    @pytest.fixture
    def backend(self, make_backend: Callable[..., SandboxBackend]) -> SandboxBackend:  # pyright: ignore[reportIncompatibleMethodOverride]
        return make_backend()

    @pytest.fixture
    def fresh_backend(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, make_backend: Callable[..., SandboxBackend]
    ) -> Callable[[], WorkspaceBackend]:
        return make_backend

    @pytest.fixture
    def attach_backend(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, make_backend: Callable[..., SandboxBackend]
    ) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return make_backend

    # Where we are stricter

    async def test_background_child_does_not_hold_up_completed_command(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, backend: SandboxBackend
    ) -> None:
        """Nor does it outlive the command, which the suite would allow."""
        mark = f"7{secrets.randbelow(10**9):09}"
        result = await backend.run(["sh", "-c", f"sleep {mark} & printf done"])
        assert (result.exit_code, result.stdout) == (0, "done")
        # The kernel may need a moment for it; by itself it would sleep for ever.
        await wait_until(lambda: not _find_processes(mark))

    async def test_cancellation_stops_foreground_work(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, backend: SandboxBackend
    ) -> None:
        """The suite looks for a process by its number, which is another one outside."""
        mark = f"7{secrets.randbelow(10**9):09}"
        running = asyncio.ensure_future(backend.run(["sh", "-c", f"sleep {mark}; true"]))
        await wait_until(lambda: _find_processes(f"sleep\0{mark}"))
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        # The kernel may need a moment for it; by itself it would sleep for ever.
        await wait_until(lambda: not _find_processes(mark))

    async def test_large_file_round_trip(self, backend: SandboxBackend) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if _CHOSEN is None:
            pytest.skip("8 MB through commands take 20 seconds: make soak workspaces")
        await super().test_large_file_round_trip(backend)
