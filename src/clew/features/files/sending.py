"""Sending of files: stored under the call, and sent with the answer of its turn."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from clew.agent.known_secrets import redact_secrets
from clew.core.attachments import FetchedFile, decode_text, image_media_type
from clew.core.byte_size import format_size
from clew.core.route import LOCAL
from clew.core.sent_files import MAX_CAPTION_CHARS, MAX_SENT_BYTES, MAX_SENT_FILES
from clew.core.text import sanitize_text
from clew.features.files.turn_workspace import locate, require_context
from clew.sandbox.errors import FileRefused, quote_path
from clew.store.transactions import attachments
from clew.wording import find_file_limit

if TYPE_CHECKING:
    from clew.core.sent_files import SentFile
    from clew.plugin import TurnContext

_ATTACHMENT: Final = re.compile(r"att_[0-9a-z]{10,}")
_MAX_NAME_CHARS: Final = 120
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\u202a-\u202e\u2066-\u2069]+')


def is_attachment(path: str) -> bool:
    """Return whether a path names a stored file and no file of the workspace."""
    return _ATTACHMENT.fullmatch(path) is not None


async def send(path: str, *, caption: str, name: str) -> str:
    """
    Store a file to be sent with the answer of the turn, and return what the model is told.

    :raises FileRefused: if it cannot be sent; the text names the limit
    """
    context = require_context()
    _require_reader(context)
    if len(caption) > MAX_CAPTION_CHARS:
        raise FileRefused(f"a caption has at most {MAX_CAPTION_CHARS} characters: say it in text")
    file = await _load(context, path, name)
    sent = await context.services.store.write(
        attachments.send_with_turn,
        context.conversation,
        context.turn,
        file,
        caption=sanitize_text(caption).strip(),
    )
    return _describe(sent)


def _require_reader(context: TurnContext) -> None:
    if context.task is not None:
        raise FileRefused(
            "the answer of a task goes to another agent, which has the same files: name the path"
        )


async def _load(context: TurnContext, path: str, name: str) -> FetchedFile:
    """Return the file of a call; a call that runs again gets the same id."""
    key = context.call_key
    if key is None:
        raise FileRefused("files are sent by a call only")
    others = await context.services.store.read(attachments.list_sent_files, context.turn)
    digest = hashlib.sha256(f"{key.turn_id} {key.step} {key.call_id} sent".encode()).hexdigest()
    id = f"att_{digest[:26]}"
    if len([one for one in others if one.attachment != id]) >= MAX_SENT_FILES:
        raise FileRefused(f"an answer has at most {MAX_SENT_FILES} files: send an archive")
    found = await _load_stored(context, path) if is_attachment(path) else await _load_path(path)
    _require_size(context, path, len(found.content))
    return FetchedFile(
        id=id,
        name=_clean_name(name, found.name),
        media_type=found.media_type,
        content=found.content,
    )


async def _load_stored(context: TurnContext, attachment: str) -> attachments.StoredFile:
    found = await context.services.store.read(
        attachments.find_file, context.conversation, attachment
    )
    if found is None:
        raise FileRefused(f"this conversation has no file {attachment}")
    return found


async def _load_path(path: str) -> attachments.StoredFile:
    place = locate(path)
    content = await asyncio.to_thread(place.workspace.read_file, place.path, limit=MAX_SENT_BYTES)
    text = await asyncio.to_thread(decode_text, content)
    if text is not None and redact_secrets(text) != text:
        raise FileRefused(f"{quote_path(path)} holds a secret of the settings: it is not sent")
    name = PurePosixPath(path).name
    guessed = image_media_type(content) or mimetypes.guess_type(name)[0]
    media_type = guessed or ("text/plain" if text is not None else "application/octet-stream")
    return attachments.StoredFile(name=name, media_type=media_type, content=content)


def _require_size(context: TurnContext, path: str, size: int) -> None:
    if not size:
        raise FileRefused(f"{quote_path(path)} is empty: no platform takes an empty file")
    if size > MAX_SENT_BYTES:
        raise FileRefused(f"a file has at most {format_size(MAX_SENT_BYTES)}")
    if context.platform != LOCAL:
        most = context.services.largest_files.get(context.platform)
        if (why := find_file_limit(context.platform, size, most)) is not None:
            raise FileRefused(f"{quote_path(path)} has {format_size(size)}: {why}")


def _clean_name(given: str, found: str) -> str:
    """Return a name that is the same on every platform, and leads nowhere."""
    name = _UNSAFE.sub("_", sanitize_text(given or found)).strip(" .")
    stem, dot, suffix = name.rpartition(".")
    if len(name) > _MAX_NAME_CHARS:
        name = f"{stem[: _MAX_NAME_CHARS - 20]}{dot}{suffix[:19]}"
    return name or "file"


def _describe(sent: SentFile) -> str:
    what = f"{sent.name}, {sent.media_type}, {format_size(sent.size)}"
    return f"[file {sent.attachment}: {what}] goes with your answer, after its text"
