"""Undo: restores the files that the last turn changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.config.workspaces import name_place
from clew.features.files import changes
from clew.features.files.changes import hash_content
from clew.features.files.turn_workspace import changing_files, require_room
from clew.features.files.writing import read_content
from clew.record import Record
from clew.sandbox.changed_files import read_file_clock
from clew.sandbox.errors import FileRefused, WorkspaceFull
from clew.sandbox.workspace import Workspace
from clew.store.transactions.workspace_writes import record_restored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId
    from clew.core.journal import CallKey
    from clew.features.files.changes import FileChange
    from clew.plugin import CommandCall, FeatureContext

_NOTHING: Final = "No file was changed in this conversation since the last undo."


class _Restored(Record):
    """The content of a file before the changes: SHA-256, ``None`` for no file."""

    content: str | None


async def undo_files(call: CommandCall, argument: str) -> str:
    """Undo the changes of the last turn that changed files; return a report."""
    if argument:
        return "/undo files takes no arguments: it undoes the last turn that changed files."
    if call.conversation_id is None:
        return _NOTHING
    return await _undo_last_turn(call.services, call.conversation_id)


async def _undo_last_turn(services: FeatureContext, conversation: ConversationId) -> str:
    found = await services.store.read(changes.read_last_changes, conversation)
    if not found:
        return _NOTHING
    by_file: dict[tuple[str, str], list[FileChange]] = {}
    for change in found:
        by_file.setdefault((change.workspace, change.path), []).append(change)
    told: list[str] = []
    settled: list[CallKey] = []
    for made in by_file.values():
        try:
            told.append(await _undo_file(services, made))
        except WorkspaceFull as full:
            told.append(f"{made[0].shown_path}: left as it is: {full}, and undo again")
        else:
            settled += [change.key for change in made]
    await services.store.write(changes.settle_changes, settled)
    return "\n".join(told)


async def _undo_file(services: FeatureContext, made: Sequence[FileChange]) -> str:
    """
    Undo the changes of one file, which are in the order in which they were made.

    :raises WorkspaceFull: if its old content has no room; it can be undone later
    """
    workspace, path, shown = Workspace(Path(made[0].workspace)), made[0].path, made[0].shown_path
    try:
        async with changing_files(services.settings.home, workspace):
            now = await asyncio.to_thread(read_content, workspace, path)
            current = hash_content(now)
            before = find_content_before(made, current)
            if before is None:
                return f"{shown}: left as it is, it was changed since"
            if before.content == current:
                return f"{shown}: is as it was before"
            if before.content is None:
                await asyncio.to_thread(workspace.remove_file, path)
                return f"{shown}: removed, it was new"
            content = await services.store.read(changes.read_version, before.content)
            if content is None:
                return f"{shown}: left as it is, its old content is not kept any more"
            await require_room(services.settings, workspace, len(content) - len(now or b""))
            await asyncio.to_thread(workspace.write_file, path, content)
            actual = await asyncio.to_thread(os.path.realpath, workspace.root / path)
            place, now_at = name_place(services.settings), read_file_clock()
            await services.store.write(
                record_restored, made[0].workspace, actual, place=place, at=now_at
            )
    except WorkspaceFull:
        raise
    except FileRefused as error:
        return f"{shown}: left as it is: {error}"
    return f"{shown}: as before, {len(content):,} bytes"


def find_content_before(made: Sequence[FileChange], current: str | None) -> _Restored | None:
    """Return the content before all changes; ``None`` if something else has changed the file."""
    for change in reversed(made):
        if change.after == current:
            current = change.before
        elif change.before != current:  # else it was interrupted before it was made
            return None
    return _Restored(content=current)
