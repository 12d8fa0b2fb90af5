"""
Writing of files: each change is stored before it is made, so that it can be undone.

A call that was interrupted runs again. It finds its change in the store, and the file as it was
before, or as it is after: then nothing is left to do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.features.files import changes
from clew.features.files.changes import FileChange, hash_content
from clew.features.files.editing import encode_text, replace_text
from clew.features.files.turn_workspace import changing_files, locate, require_context, require_room
from clew.sandbox.errors import FileMissing, FileRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.plugin import TurnContext
    from clew.sandbox.workspace import Workspace

#: Bytes of a file that is changed: each version is kept in the store.
MAX_BYTES: Final = 8_000_000


async def write_text(path: str, content: str) -> str:
    """
    Create or replace a file; return what was done.

    :raises FileRefused: if it cannot be written, or was replaced meanwhile
    """
    made = encode_text(content)
    if len(made) > MAX_BYTES:
        raise FileRefused(f"the content has {len(made):,} bytes; at most {MAX_BYTES:,} are written")
    return await _change_file(path, lambda _: made)


async def edit_text(path: str, old: str, new: str, *, every: bool) -> str:
    """
    Replace a text in a file; return what was done.

    :raises FileRefused: if ``old`` is not in it once, or the file cannot be changed
    """

    def make(before: bytes | None) -> bytes:
        if before is None:
            raise FileMissing(path)
        return replace_text(path, before, old, new, every=every)

    return await _change_file(path, make)


async def _change_file(path: str, make: Callable[[bytes | None], bytes]) -> str:
    """Replace the content of a file by what ``make`` returns for it."""
    context, workspace = require_context(), (place := locate(path)).workspace
    path = workspace.relative_path(place.path)
    encode_text(path)  # it is stored
    assert context.call_key is not None
    async with changing_files(context.services.settings.home, workspace):
        before = await asyncio.to_thread(read_content, workspace, path)
        begun = await context.services.store.read(changes.find_change, context.call_key)
        if begun is not None:
            return await _complete_change(context, workspace, begun, before)
        after = make(before)
        if after == before:
            return f"{path!r} is unchanged: it has this content already"
        await require_room(context.services.settings, workspace, len(after) - len(before or b""))
        change = FileChange(
            key=context.call_key,
            conversation=context.conversation,
            workspace=str(workspace.root),
            path=path,
            before=hash_content(before),
            after=hash_content(after) or "",
        )
        await context.services.store.write(changes.store_change, change, before, after)
        await _write_content(context, workspace, change, after)
    return _describe_change(change, after)


async def _complete_change(
    context: TurnContext, workspace: Workspace, change: FileChange, content: bytes | None
) -> str:
    """Make a change that an earlier run of the same call has begun."""
    if content is not None and hash_content(content) == change.after:
        return _describe_change(change, content)
    if hash_content(content) != change.before:
        raise FileRefused(
            f"{change.shown_path!r} was changed by something else while this call was interrupted: "
            "read it again"
        )
    after = await context.services.store.read(changes.read_version, change.after)
    if after is None:
        raise FileRefused(f"the new content of {change.path!r} is lost: write it again")
    await _write_content(context, workspace, change, after)
    return _describe_change(change, after)


async def _write_content(
    context: TurnContext, workspace: Workspace, change: FileChange, content: bytes
) -> None:
    try:
        await asyncio.to_thread(workspace.write_file, change.path, content)
    except FileRefused:
        await context.services.store.write(changes.forget_change, change.key)
        raise


def read_content(workspace: Workspace, path: str) -> bytes | None:
    """
    Return the content of a file that is to be changed; ``None`` if there is none.

    :raises FileRefused: if it cannot be changed
    """
    try:
        return workspace.read_file(path, limit=MAX_BYTES)
    except FileMissing:
        return None


def _describe_change(change: FileChange, after: bytes) -> str:
    what = "created" if change.before is None else "changed"
    return f"{what} {change.shown_path!r}, now {len(after):,} bytes"
