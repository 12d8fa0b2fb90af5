"""Two clients of the protocol and one of HTTP on one conversation, whose server is killed."""

from __future__ import annotations

from tests.acceptance.program import Clew
from tests.screens.evening import spend
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

MESSAGES, KILLS = 120, 20


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    passed = True
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                evening = spend(
                    Clew(home / "home", {"CLEW_STORE__URL": url}), messages=MESSAGES, kills=KILLS
                )
            for name, screen in zip(("client 1", "client 2", "HTTP"), evening.screens, strict=True):
                seen = screen.seen
                rows.append((database, name, len(seen.entries), seen.resumed, seen.wrong))
            rows.append((database, "together", len(evening.said), evening.kills, evening.missing))
            passed &= evening.passed
            print(*rows[-4:], sep="\n", flush=True)
    return Table(
        title=f"three screens, {MESSAGES} messages, {KILLS} kills of the server",
        columns=(
            "database",
            "screen",
            "entries (together: messages said)",
            "came back (together: kills)",
            "gaps, repeats, disorder (together: lost or doubled)",
        ),
        rows=tuple(rows),
        passed=passed,
    )
