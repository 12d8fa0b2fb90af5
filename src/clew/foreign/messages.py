"""Messages of other systems as messages of a context."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any, Final

from clew.agent.compactor import make_summary_message
from clew.agent.messages import (
    MESSAGE_FORMAT,
    dump_message,
    make_missing_response,
    make_user_draft,
    message_to_draft,
)
from clew.agent.plain_messages import (
    PlainCall,
    PlainResult,
    draft_response,
    draft_results,
    draft_text,
)
from clew.clock import from_millis
from clew.core.attachments import FetchedFile, find_exceeded_limit
from clew.core.channel_events import make_file_part
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.export_format.sealed_lines import encode_json
from clew.core.text import sanitize_text
from clew.foreign.ids import clamp_millis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.ids import EntryId
    from clew.foreign.conversations import (
        ForeignCall,
        ForeignEvent,
        ForeignFile,
        ForeignMessage,
        ForeignResult,
    )
    from clew.foreign.ids import IdMaker

#: Format of an event of another system; its message is the kind and what was stored.
EVENT_FORMAT: Final = "clew/foreign-event"
_UNKNOWN: Final = "unknown"
_EMPTY: Final = "the system that it was imported from stored an empty message"


def encode_summary(summary: str) -> dict[str, Any]:
    """Return a summary as an item of a session's base."""
    message = dump_message(make_summary_message(sanitize_text(summary)))
    return {"format": MESSAGE_FORMAT, "message": message}


def draft_message(entry_id: EntryId, message: ForeignMessage) -> NewEntry:
    """Return a message of the agent or of its tools as an entry."""
    at = clamp_millis(message.at)
    if message.role is not Role.ASSISTANT:
        return draft_results(entry_id, tuple(map(_make_result, message.results)), at=at)
    text = sanitize_text(_add_file_names(message))
    if not (text or message.reasoning or message.calls):
        return message_to_draft(entry_id, make_missing_response(_EMPTY))
    return draft_response(
        entry_id,
        text,
        reasoning=sanitize_text(message.reasoning),
        calls=tuple(map(_make_call, message.calls)),
        model=sanitize_text(message.model),
        at=at,
    )


def draft_user_message(
    entry_id: EntryId, message: ForeignMessage, files: Sequence[Mapping[str, object]]
) -> NewEntry:
    """Return a message of a person as an entry; ``files`` as its payload describes them."""
    at, text = clamp_millis(message.at), sanitize_text(message.text)
    if not files:
        return draft_text(entry_id, text, at=at)
    parts = [make_file_part(file) for file in files]
    said = [text] if text else []
    return make_user_draft(entry_id, [*said, *parts], said_at=from_millis(at))


def draft_event(entry_id: EntryId, event: ForeignEvent) -> NewEntry:
    """Return something that is no message as an entry outside of the context."""
    told = {"kind": sanitize_text(event.kind), "stored": sanitize_text(event.payload)}
    return NewEntry(
        id=entry_id,
        kind=EntryKind.EVENT,
        role=None,
        text=sanitize_text(event.text),
        format=EVENT_FORMAT,
        message=encode_json(told),
    )


def fetch_files(message: ForeignMessage, ids: IdMaker) -> list[FetchedFile]:
    """Return the files of a message as if they had been sent to us."""
    return [
        _fetch_file(ids.make_id("att", f"{message.id}#{number}", clamp_millis(message.at)), file)
        for number, file in enumerate(message.files)
    ]


def _fetch_file(name: str, file: ForeignFile) -> FetchedFile:
    content, missing = file.content, None
    if content is None:
        missing = "it was not kept by the system that it was imported from"
    elif (limit := find_exceeded_limit(content)) is not None:
        missing = f"it has {len(content):,} bytes, more than {limit:,}"
        content = None
    return FetchedFile(
        id=name,
        name=sanitize_text(file.name) or "file",
        media_type=sanitize_text(file.media_type) or _guess_type(file.name),
        content=content,
        missing=missing,
    )


def _guess_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def _add_file_names(message: ForeignMessage) -> str:
    names = [f"[file {file.name}, {file.media_type}]" for file in message.files]
    return "\n".join(filter(None, [message.text, *names]))


def _make_call(call: ForeignCall) -> PlainCall:
    return PlainCall(
        id=sanitize_text(call.id),
        tool=sanitize_text(call.name) or _UNKNOWN,
        arguments=sanitize_text(call.arguments),
    )


def _make_result(result: ForeignResult) -> PlainResult:
    return PlainResult(
        call_id=sanitize_text(result.call_id),
        tool=sanitize_text(result.name) or _UNKNOWN,
        text=sanitize_text(result.text),
        is_error=result.is_error,
    )
