"""
One database for each test above the store, by turns: what ``make test`` runs.

Both databases behave alike because the contracts of the store, ``tests/contract``, run on both. A
test above it runs on one of them: on SQLite, but every fourth, and every second that starts the
program, on PostgreSQL, where a test takes twice as long. What ``tests/again.py`` lists is left out.
``make soak suite``, ``make test DATABASES=both``, and pytest without the option, run all on both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

from tests.again import is_proved_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

OPTION, IN_TURN = "--databases", "in-turn"
#: For a test with statements that no other runs on both databases.
MARK = "both_databases"
FOLDERS = (
    *("tests/acceptance/", "tests/features/", "tests/integration/"),
    "tests/contract/test_chat_commands.py",
    *("tests/contract/test_contexts.py", "tests/contract/test_recall.py"),
    *("tests/contract/test_scopes.py", "tests/contract/test_cases_lifecycle.py"),
)
_DATABASES = ("sqlite", "postgres")
#: Of so many tests one runs on PostgreSQL.
_EVERY = 4
_EVERY_IN = {"tests/acceptance/": 2}
#: In the id of a test: one of its parameters.
_DATABASE = re.compile(rf"(?<=[\[-])({'|'.join(_DATABASES)})(?=[\]-])")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION, choices=("both", IN_TURN), default="both", help="for tests above the store"
    )


def keep_one_each(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what proves the same twice, if that is asked for."""
    if config.getoption(OPTION) != IN_TURN:
        return
    left_out = {item.nodeid: item for item in items if is_proved_elsewhere(item.nodeid)}
    doubled = find_doubled(item.nodeid for item in items if item.nodeid not in left_out)
    left_out |= {
        item.nodeid: item
        for item in items
        if item.nodeid in doubled and not item.get_closest_marker(MARK)
    }
    config.hook.pytest_deselected(items=[*left_out.values()])
    items[:] = [item for item in items if item.nodeid not in left_out]


def find_doubled(nodes: Iterable[str]) -> set[str]:
    """Return the ids of those tests that run on the other database."""
    databases: dict[str, dict[str, str]] = {}
    for node in nodes:
        found = _DATABASE.search(node)
        if found and node.startswith(FOLDERS):
            databases.setdefault(_DATABASE.sub("", node, count=1), {})[found[1]] = node
    doubled: set[str] = set()
    turns: dict[str, int] = {}
    # By name: the order in which they are collected may be random.
    for test, variants in sorted(databases.items()):
        file = test.partition("::")[0]
        # Else every file that has one test would run it on the same database.
        turns[file] = turns.get(file, crc32(file.encode())) + 1
        if len(variants) == len(_DATABASES):
            every = next((n for folder, n in _EVERY_IN.items() if file.startswith(folder)), _EVERY)
            doubled.add(variants["sqlite" if turns[file] % every == 0 else "postgres"])
    return doubled
