"""Files of the workspace, as jobs watch them."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from clew.config.workspaces import find_workspace
from clew.features.files.reading import decode_text
from clew.plugin.declarations import WatchedText
from clew.plugin.foreign_files import holds_foreign_text
from clew.sandbox.errors import FileMissing, FileRefused

if TYPE_CHECKING:
    from clew.core.scope import Scope
    from clew.plugin import FeatureContext
    from clew.sandbox.workspace import Workspace


async def read_watched_file(context: FeatureContext, scope: Scope, path: str) -> WatchedText:
    """
    Return the text of a file in the workspace of a scope; that it is missing is a text, too.

    :raises FileRefused: if it is outside, too large, or not a file
    """
    workspace = find_workspace(context.settings, scope)
    text = await asyncio.to_thread(_read_file, workspace, path)
    inside = workspace.relative_path(path)
    foreign = await holds_foreign_text(
        context.store, str(workspace.root), str(workspace.root / inside)
    )
    return WatchedText(text=text, untrusted=foreign)


def _read_file(workspace: Workspace, path: str) -> str:
    workspace.create()
    try:
        content = workspace.read_file(path)
    except FileMissing:
        return "[there is no such file]"
    try:
        return decode_text(path, content).text
    except FileRefused:
        digest = hashlib.sha256(content).hexdigest()
        return f"[binary, {len(content):,} bytes, sha256 {digest}]"
