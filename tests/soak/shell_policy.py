"""Generated shell commands against patterns that allow, compared with what bash runs."""

from __future__ import annotations

import os
import time

from tests.shell_policy import PATTERNS, Generator, is_allowed, judge, observe
from tests.soak import Table

COMMANDS = int(os.environ.get("CLEW_SOAK_COMMANDS", "10000"))
SEED = int(os.environ.get("CLEW_SOAK_SEED", "1"))


def run() -> Table:
    generated = list(Generator(SEED).commands(COMMANDS))
    allowed = [command for command in generated if is_allowed(command)]
    others = [command for command in generated if not is_allowed(command)]
    # Of the others only a sample: bash cannot show that one of them is allowed wrongly.
    commands = allowed + others[: len(others) // 10]
    begun = time.monotonic()
    observed = observe(commands)
    ran = time.monotonic() - begun
    found = judge(commands, observed)
    for command, pattern in found.wrong[:20]:
        print(f"{pattern!r} allows {command!r}")
    return Table(
        title=f"{COMMANDS:,} commands against {len(PATTERNS)} patterns",
        columns=("what", "count"),
        rows=(
            ("commands", COMMANDS),
            ("that the patterns allow", len(allowed)),
            ("run in bash: these, and a tenth of the others", found.commands),
            ("of which a program ran for", found.executed),
            ("programs that bash ran", sum(len(one.calls) for one in observed)),
            ("pairs of command and pattern that are allowed", found.allowed),
            ("pairs that bash's calls fit, and that ask", found.refused),
            ("wrongly allowed", len(found.wrong)),
            ("seconds in bash", round(ran)),
        ),
        passed=not found.wrong and found.allowed > 0,
    )
