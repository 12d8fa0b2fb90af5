"""
The API as somebody sees it who knows only ``/openapi.json``: schemathesis against ``clew serve``.

It makes requests from the description, right and wrong ones, one alone and in sequences, and holds
the answers against it. ``/mcp``, which describes itself, ``/ag-ui``, whose messages the description
leaves open, and ``clew acp`` are called beside it. When all is done, the store must satisfy every
invariant.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.store.opening import open_store
from tests.contract import invariants
from tests.fuzzing.acp_door import fuzz_acp
from tests.fuzzing.ag_ui_door import fuzz_ag_ui
from tests.fuzzing.mcp_door import fuzz_mcp

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.acceptance.program import Clew

TOKEN = "s3cret-token"
#: A name that is there makes more of its requests reach what lies behind the checks. In paths ids
#: are better, which it finds for itself: a deleted name comes back with the next message.
_CONFIG = """\
[parameters]
"header.X-Clew-Conversation" = "talk"
"header.X-Clew-Double-Text" = "interrupt"
"""
_ARGUMENTS = (
    # Values that a description cannot express, such as valid cursors, are refused all the same.
    "--checks=all",
    "--exclude-checks=positive_data_acceptance",
    # A doctor that starts a sandbox is slow on a busy machine; what hangs is found all the same.
    "--max-response-time=110",
    # A stream of events has no end.
    "--exclude-path-regex=/events$",
    "--request-timeout=120",
    "--generation-database=none",
    "--continue-on-failure",
    # Python 3.11 cannot parse in two threads what hypothesis wants to print.
    "--workers=1",
    "--warnings=off",
    "--no-color",
)


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """Result of a run."""

    cases: int
    #: Empty, or what the fuzzer says about an answer that is not as described.
    complaint: str
    #: Errors that the server logged.
    errors: tuple[str, ...]
    #: Invariants that do not hold in the store afterwards.
    violations: tuple[str, ...]


def fuzz(
    clew: Clew, *limits: str, store_url: str, seed: int, folder: Path, seconds: int = 0
) -> Fuzzed:
    """Serve, run the fuzzer within ``limits`` or ``seconds``, stop, and check the store."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schemathesis.toml").write_text(_CONFIG)
    with _serving(clew, folder / "serve.log") as url:
        done = subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                "run",
                f"{url}/openapi.json",
                f"--header=Authorization: Bearer {TOKEN}",
                *([f"--max-time={seconds}"] if seconds else []),
                *limits,
                f"--seed={seed}",
                *_ARGUMENTS,
            ],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=seconds + 120,
            check=False,
        )
        calls = 100 + 10 * seconds
        complaints = [
            *fuzz_mcp(url, TOKEN, seed=seed, calls=calls),
            *fuzz_ag_ui(url, TOKEN, seed=seed, runs=calls // 5),
            *fuzz_acp(clew, TOKEN, seed=seed, requests=calls // 2),
        ]
    cases = re.search(r"([\d,]+) generated", done.stdout)
    log = (folder / "serve.log").read_text(encoding="utf-8").splitlines()
    return Fuzzed(
        cases=int(cases[1].replace(",", "")) if cases else 0,
        complaint="\n".join(
            ([] if done.returncode == 0 else [done.stdout, done.stderr]) + complaints
        ),
        errors=tuple(line for line in log if '"level": "error"' in line),
        violations=tuple(asyncio.run(_violations(store_url, clew.home))),
    )


@contextmanager
def _serving(clew: Clew, log: Path) -> Generator[str]:
    with (
        log.open("w") as errors,
        clew.with_env({"CLEW_API__TOKEN": TOKEN}).serving(errors=errors) as (url, process),
    ):
        yield url
        process.terminate()
        code = process.wait(60)
        assert code == 0, f"the server ended with {code}"


async def _violations(url: str, home: Path) -> list[str]:
    async with await open_store(url, home=home) as store:
        return await store.read(invariants.check)
