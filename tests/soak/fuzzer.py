"""Ten minutes of requests made from the API's description, on both databases."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.acceptance.program import Clew
from tests.fuzzing import fuzz
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from tests.fuzzing import Fuzzed

#: For each database.
SECONDS = int(os.environ.get("CLEW_SOAK_SECONDS", "300"))


def run() -> Table:
    with server() as url:
        found = [(database, *_on(database, url)) for database in DATABASES]
    for _, _, one in found:
        for told in (one.complaint, *one.errors, *one.violations):
            if told:
                print(told)
    return Table(
        title="The API, fuzzed from its description",
        columns=("database", "seed", "cases", "not as described", "errors", "violations"),
        rows=tuple(
            (
                database,
                seed,
                one.cases,
                "yes" if one.complaint else "no",
                len(one.errors),
                len(one.violations),
            )
            for database, seed, one in found
        ),
        passed=not any(one.complaint or one.errors or one.violations for _, _, one in found),
    )


def _on(database: str, server_url: str) -> tuple[int, Fuzzed]:
    seed = int.from_bytes(os.urandom(4), "big")
    with fresh(database, server_url) as (url, home):
        clew = Clew(home / "home", {"CLEW_MODEL__NAME": "offline", "CLEW_STORE__URL": url})
        return seed, fuzz(clew, store_url=url, seconds=SECONDS, seed=seed, folder=home / "fuzzer")
