"""Files in ``CLEW_HOME/memory``: written from the facts, and merged when an operator edits them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Final

import structlog

from clew.config.workspaces import name_folder
from clew.core.scope import Scope
from clew.features.memory import file_merging, forgetting, writing
from clew.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from clew.features.memory.file_merging import FileContent, WrittenFile
    from clew.plugin import FeatureContext

log = structlog.get_logger(__name__)

#: The folder in the home of Clew.
FOLDER: Final = "memory"
#: Seconds for which a file must be as it is: an editor may be writing it.
SETTLED: Final = 5.0
#: Bytes of a file that is read.
_MAX_BYTES: Final = 5_000_000
_HEAD: Final = "# Memory of "


class _SeenFile(Record):
    path: Path
    mtime: int
    text: str


async def sync_files(context: FeatureContext, *, settled: float = SETTLED) -> None:
    """Merge the files that were edited, and write those whose facts have changed."""
    folder = context.settings.home / FOLDER
    known = await context.store.read(file_merging.list_scopes)
    seen = await asyncio.to_thread(_scan, folder)
    for scope in {**known, **seen}:
        version, written = known.get(scope, (0, None))
        file = seen.get(scope)
        try:
            await _sync_file(context, scope, version, written, file, settled)
        except OSError as error:
            log.warning("memory_file_not_written", scope=scope, error=str(error))


async def _sync_file(
    context: FeatureContext,
    scope: Scope,
    version: int,
    written: WrittenFile | None,
    file: _SeenFile | None,
    settled: float,
) -> None:
    remarks: list[str] = []
    if file is not None and _is_edited(file, written):
        if time.time() - file.mtime / 1e9 < settled:
            return
        remarks = await _merge(context, scope, file, written)
    elif file is not None and written is not None and written.version == version:
        return
    content = await context.store.read(file_merging.make_content, scope, remarks)
    path = context.settings.home / FOLDER / _name_file(scope)
    mtime = await asyncio.to_thread(_replace, path, content, None if file is None else file.mtime)
    if mtime is not None:
        await context.store.write(file_merging.store_written, scope, content, mtime)


def _is_edited(file: _SeenFile, written: WrittenFile | None) -> bool:
    if written is None:
        return True
    return file.mtime != written.mtime and file_merging.hash_text(file.text) != written.digest


async def _merge(
    context: FeatureContext, scope: Scope, file: _SeenFile, written: WrittenFile | None
) -> list[str]:
    def new_id() -> str:
        return writing.make_fact_id(context.ids.new_operation_id())

    done = await context.store.write(file_merging.merge_file, scope, file.text, written, new_id)
    for one in done.forgotten:
        forgetting.tell_forgotten(context, one)
    log.info("memory_file_merged", scope=scope, forgotten=len(done.forgotten))
    return done.remarks


def _name_file(scope: str) -> str:
    return f"{name_folder(scope)}.md"


def _scan(folder: Path) -> dict[Scope, _SeenFile]:
    """Return the files whose names are those of the scopes that they say they are of."""
    found: dict[Scope, _SeenFile] = {}
    for path in sorted(folder.glob("*.md")):
        status = path.stat()
        if status.st_size > _MAX_BYTES:
            log.warning("memory_file_too_large", path=str(path), bytes=status.st_size)
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        head = next((line for line in text.splitlines() if line.strip()), "").strip()
        scope = Scope(head.removeprefix(_HEAD).strip())
        if not head.startswith(_HEAD) or path.name != _name_file(scope):
            log.warning("memory_file_unknown", path=str(path), first_line=head[:80])
            continue
        found[scope] = _SeenFile(path=path, mtime=status.st_mtime_ns, text=text)
    return found


def _replace(path: Path, content: FileContent, mtime: int | None) -> int | None:
    """Write a file that is still as it was seen; return its time of change, or ``None``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    with os.fdopen(
        os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as out:
        out.write(content.text)
    if (path.stat().st_mtime_ns if path.exists() else None) != mtime:
        made.unlink()
        return None
    made.replace(path)
    return path.stat().st_mtime_ns
