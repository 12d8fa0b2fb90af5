"""Messages to Mattermost: the stored chunks and their API payloads; pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import verbatim
from clew.core.payload import as_object
from clew.gateway.text.markdown_writer import MarkdownMeasure, write_markdown
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

#: Maximum characters of a post, counted in UTF-16 code units: never fewer than the server counts.
MAX_LENGTH = 16_383
#: The property of our posts by which they are found again.
KEY_PROPERTY: Final = "clew_delivery"
_REPEAT_NOTICE: Final = "(may be a repeat)\n"

Json = dict[str, Any]


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    limit = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE))
    bodies: list[Json] = [
        {"message": write_markdown(part)} for part in paginate(message, MarkdownMeasure(), limit)
    ]
    if bodies and message.document is not None:
        bodies.insert(0, {"message": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name, and the caption as its text."""
    said = render(verbatim(file.caption))
    body: Json = json.loads(said[0]) if said else {"message": ""}
    return json.dumps({**body, "document": {"name": file.name}}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "message": _REPEAT_NOTICE + body["message"]}, ensure_ascii=False)


def hash_key(key: str) -> str:
    """Return the mark of a post for a key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def build_post(route: Route, chunk: str, *, key: str, files: Sequence[str] = ()) -> Json:
    """Return the payload of a new post."""
    return {
        "channel_id": route.chat,
        "message": json.loads(chunk)["message"],
        "root_id": route.thread or "",
        "file_ids": list(files),
        # The server takes a second post with the same id for half a minute as the first.
        "pending_post_id": hash_key(key),
        "props": {KEY_PROPERTY: hash_key(key), "disable_group_highlight": True},
    }


def build_edit(chunk: str) -> Json:
    """Return the payload of an edit."""
    return {"message": json.loads(chunk)["message"]}


def read_file_name(chunk: str) -> str:
    """Return the name of the file of a chunk."""
    return str(json.loads(chunk)["document"]["name"])


def build_file(chunk: str) -> tuple[str, bytes] | None:
    """Return name and content of the file to send with a chunk."""
    found: Json | None = json.loads(chunk).get("document")
    return None if found is None else (found["name"], found["text"].encode())


def find_own_post(posts: Sequence[Json], key: str) -> str | None:
    """Return the id of the post that was sent with a key."""
    mark = hash_key(key)
    return next((str(one["id"]) for one in posts if _read_mark(one) == mark), None)


def _read_mark(post: Json) -> object:
    return None if post.get("delete_at") else as_object(post.get("props")).get(KEY_PROPERTY)
