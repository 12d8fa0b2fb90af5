"""The choice of the sandbox that is in force: the first one that works when it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.container import ContainerSandbox
from clew.sandbox.errors import SandboxUnavailable
from clew.sandbox.landlock import LandlockSandbox
from clew.sandbox.request import HOST_WARNING
from clew.sandbox.seatbelt import SeatbeltSandbox
from clew.sandbox.unconfined import UnconfinedHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.sandbox_level import Level
    from clew.sandbox.protocol import ProbeReport, Sandbox
    from clew.sandbox.request import SandboxPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxChoice:
    """The sandbox in force, if there is one, and what was tried before it."""

    level: Level
    sandbox: Sandbox | None
    #: The name of each that does not work, with the report of its try.
    failures: Sequence[tuple[str, ProbeReport]] = ()

    @property
    def refusal(self) -> str | None:
        """A sentence that says why no command can run, and what to do; ``None`` if one can."""
        if self.sandbox is not None:
            return None
        return "; ".join([self.reason, *self.fixes[:1]])

    @property
    def reason(self) -> str:
        """The reason for which there is no sandbox, without what to do."""
        reasons = "; ".join(report.detail for _, report in self.failures)
        return (
            f"there is no sandbox for the level {self.level} here, so no command runs ({reasons})"
        )

    @property
    def fixes(self) -> Sequence[str]:
        """The advice for each that does not work: install or allow something."""
        return [report.fix for _, report in self.failures if report.fix]

    @property
    def warning(self) -> str | None:
        """A warning for as long as commands are not confined; else ``None``."""
        return HOST_WARNING if isinstance(self.sandbox, UnconfinedHost) else None

    def require_sandbox(self) -> Sandbox:
        """
        Return the sandbox; there is never a silent fall to the host.

        :raises SandboxUnavailable: saying why there is none, and what to install
        """
        if self.sandbox is None:
            raise SandboxUnavailable(self.refusal or "there is no sandbox")
        return self.sandbox


async def choose_sandbox(policy: SandboxPolicy) -> SandboxChoice:
    """Try the sandboxes of the level in order, and return the first one that works."""
    failures: list[tuple[str, ProbeReport]] = []
    for candidate in make_candidates(policy):
        report = await candidate.probe()
        if report.works:
            return SandboxChoice(level=policy.level, sandbox=candidate, failures=tuple(failures))
        failures.append((candidate.name, report))
    return SandboxChoice(level=policy.level, sandbox=None, failures=tuple(failures))


def make_candidates(policy: SandboxPolicy) -> Sequence[Sandbox]:
    """Return what can provide the level, the strongest first."""
    match policy.level:
        case "read" | "work":
            return (
                BubblewrapSandbox(policy.folder, private=policy.private),
                LandlockSandbox(private=policy.private),
                SeatbeltSandbox(),
            )
        case "box":
            return (ContainerSandbox(policy.image),)
        case "net":
            # Only a network namespace leaves a single way out.
            return (BubblewrapSandbox(policy.folder, private=policy.private),)
        case "host":
            return (UnconfinedHost(),)
