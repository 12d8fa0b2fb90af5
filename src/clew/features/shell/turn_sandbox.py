"""The sandbox of the running turn: found once for each level, and tried when it is found."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from clew.config.workspaces import make_sandbox_policy
from clew.record import Record
from clew.sandbox.selection import choose_sandbox

if TYPE_CHECKING:
    from clew.core.sandbox_level import Level
    from clew.plugin import TurnContext
    from clew.sandbox.protocol import Sandbox
    from clew.sandbox.request import SandboxPolicy
    from clew.sandbox.selection import SandboxChoice

#: Seconds until a sandbox that did not work is tried again.
_RETRY_AFTER: Final = 60.0


class FoundSandbox(Record):
    """The terms of commands, and what keeps them apart; ``None`` if nothing here can."""

    policy: SandboxPolicy
    choice: SandboxChoice
    at: float

    @property
    def sandbox(self) -> Sandbox | None:
        return self.choice.sandbox


_found: dict[object, FoundSandbox] = {}


async def find_sandbox(context: TurnContext) -> FoundSandbox:
    """
    Return the sandbox for the commands of a turn.

    :raises SettingsError: if a secret of the settings cannot be read
    """
    settings = context.services.settings
    level = cast("Level", context.sandbox_level)
    key = (settings.home, settings.sandbox, level)
    known = _found.get(key)
    if known is None or (known.sandbox is None and time.monotonic() - known.at > _RETRY_AFTER):
        policy = replace(make_sandbox_policy(settings), level=level)
        choice = await choose_sandbox(policy)
        known = FoundSandbox(policy=policy, choice=choice, at=time.monotonic())
        _found[key] = known
    return known
