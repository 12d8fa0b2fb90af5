"""A turn that writes a file and edits it, in a process that is killed; the next one goes on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.features.files.changes import hash_content
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.features.killed_commands import KILLED, CommandJob, run_turn
from tests.killing import processes
from tests.killing.killer import Place

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply

#: The file: before, as it is written, and as it is edited. Edited twice it would be something else.
WRITTEN, EDITED = "one\n" * 50_000 + "two\n", "one\n" * 50_000 + "two!\n"
VERSIONS = (None, WRITTEN, EDITED)
TOLD = ("created 'a', now 200,004 bytes", "changed 'a', now 200,005 bytes")
_CALLS = (
    ScriptedCall("write_file", {"path": "a", "content": WRITTEN}),
    ScriptedCall("edit_file", {"path": "a", "old": "two", "new": "two!"}),
)
#: The places around a change, in their order.
PLACES = (
    *(f"journal.record_intent {moment}" for moment in ("before", "inside", "after")),
    *(f"changes.store_change {moment}" for moment in ("before", "inside", "after")),
    "file written, not in its place",
    "file in its place",
    *(f"journal.record_result {moment}" for moment in ("before", "inside", "after")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOutcome:
    """Result of a run."""

    #: The file after the kill, and in the end.
    killed: str | None
    ended: str | None
    told: tuple[str, ...]
    #: The stored changes: the contents before and after.
    changes: tuple[tuple[str | None, str], ...]


#: The final changes, wherever the process was killed.
CHANGES = (
    (None, hash_content(WRITTEN.encode())),
    (hash_content(WRITTEN.encode()), hash_content(EDITED.encode())),
)


def kill_in_a_change(home: Path, store_url: str, place: str, nth: int) -> FileOutcome:
    """Kill the gateway at a place of the first or second call, let another go on, and look."""
    file = home / "work" / "local" / "a"

    def answer(request: ProviderRequest) -> Reply:
        if any(message.results for message in request.messages):
            return Text("done")
        return Calls(_CALLS)

    with FakeProvider(answer) as provider:
        job = CommandJob(home=home, store_url=store_url, provider=provider.openai_url)
        process = processes.fork(run_turn, replace(job, place=Place(name=place, nth=nth)))
        assert processes.ended(process) == KILLED
        killed = file.read_text() if file.exists() else None
        assert processes.ended(processes.fork(run_turn, job)) == 0
        sent: dict[str, Any] = provider.requests[-1].json or {}
    return FileOutcome(
        killed=killed,
        ended=file.read_text() if file.exists() else None,
        told=tuple(one["content"] for one in sent["messages"] if one["role"] == "tool"),
        changes=tuple(asyncio.run(_read_changes(home, store_url))),
    )


def is_expected(found: FileOutcome) -> bool:
    """Return whether both changes were made, each completely, once or again to the same effect."""
    made = (found.ended, found.told, found.changes)
    return found.killed in VERSIONS and made == (EDITED, TOLD, CHANGES)


async def _read_changes(home: Path, store_url: str) -> list[tuple[str | None, str]]:
    settings = load_settings_with_features(home=home, flags={}, environ={})
    schemas = get_features(settings).schemas
    async with await open_store(store_url, home=home, features=schemas) as store:
        return await store.read(_fetch_changes)


def _fetch_changes(t: Tx) -> list[tuple[str | None, str]]:
    rows = t.fetch_all("SELECT before_sha256, after_sha256 FROM files_change ORDER BY n")
    return [(row[0], row[1]) for row in rows]
