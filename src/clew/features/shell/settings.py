"""The settings of commands."""

from __future__ import annotations

from typing import Final

from clew.config.builtin_types import integer_type
from clew.config.fields import setting
from clew.record import Record

#: Seconds that a call waits at most: a provider's connection may not stay open for longer.
LONGEST_WAIT: Final = 540


class ShellSettings(Record):
    """Commands of the agent, and how long a call waits for one."""

    foreground: int = setting(
        integer_type(least=1, most=LONGEST_WAIT, unit="seconds"),
        120,
        "Seconds that a call waits for its command. After that the command goes on in the "
        "background, and the model is told its end. It is stopped after `sandbox.seconds`.",
        live=True,
    )
