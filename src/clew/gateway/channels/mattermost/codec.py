"""Codec of Mattermost: events of its WebSocket, and posts, to events of a chat; pure."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import (
    DM,
    GROUP,
    ChannelEvent,
    IgnoredEvent,
    IncomingFile,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.payload import as_list, as_object, as_objects, as_text
from clew.core.quotation import Quoted, format_titled_item, quote_forwarded
from clew.core.route import Route
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLATFORM: Final = "mattermost"
#: The type of a direct channel between two people.
DIRECT: Final = "D"
_POST_EVENTS: Final = ("posted", "post_edited", "post_deleted")
#: Events that say nothing of a message.
_QUIET: Final = frozenset({"hello", "typing", "status_change", "channel_viewed", "thread_updated"})

Json = dict[str, Any]


class MattermostIdentity(Record):
    """The bot's identity."""

    id: str
    #: Its user name, by which it is mentioned.
    name: str
    #: The account's name in routes.
    label: str | None = None
    #: Commands that people may write with ``!`` in place of ``/``.
    commands: frozenset[str] = frozenset()


def read_post(frame: Mapping[str, Any]) -> Json | None:
    """Return the post of an event; ``None`` if the event has none."""
    if frame.get("event") not in _POST_EVENTS:
        return None
    try:
        return as_object(json.loads(as_text(as_object(frame.get("data")).get("post"))))
    except ValueError:
        return {}


def read_channel_type(frame: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a channel and its type, if an event tells."""
    post, told = read_post(frame), as_object(frame.get("data"))
    kind = as_text(told.get("channel_type"))
    return (as_text(post.get("channel_id")), kind) if post and kind else None


def parse_frame(
    frame: Mapping[str, Any], me: MattermostIdentity, types: Mapping[str, str]
) -> ChannelEvent | IgnoredEvent:
    """Parse an event of the WebSocket; ``types`` are the types of the channels."""
    post = read_post(frame)
    kind = as_text(frame.get("event"))
    if post is None:
        return IgnoredEvent(kind="quiet" if kind in _QUIET else f"event: {kind}")
    if kind == "post_deleted":
        return _parse_deletion(post, me, types)
    name = as_text(as_object(frame.get("data")).get("sender_name")).removeprefix("@")
    return parse_post(post, me, types, name=name)


def parse_post(
    post: Json, me: MattermostIdentity, types: Mapping[str, str], *, name: str = ""
) -> ChannelEvent | IgnoredEvent:
    """Parse a post as it is now: new, edited or deleted."""
    if post.get("delete_at"):
        return _parse_deletion(post, me, types)
    if (reason := _find_reason_to_ignore(post, me)) is not None:
        return IgnoredEvent(kind=reason)
    heard = _parse_message(post, me, types, name)
    at = post.get("edit_at")
    return MessageEdited.from_message(heard, at=at) if at else heard


def _find_reason_to_ignore(post: Json, me: MattermostIdentity) -> str | None:
    if not post.get("id") or not post.get("user_id"):
        return "a post of nobody"
    if post["user_id"] == me.id:
        return "a message of the agent"
    props = as_object(post.get("props"))
    # Other bots are not answered, so that two bots do not talk for ever.
    if any(_is_true(props.get(name)) for name in ("from_bot", "from_webhook", "from_plugin")):
        return "a message of a bot"
    kind = as_text(post.get("type"))
    return f"service: {kind}" if kind.startswith("system_") else None


def _is_true(value: object) -> bool:
    return value is True or value == "true"


def _route_of(post: Json, me: MattermostIdentity, types: Mapping[str, str]) -> Route:
    channel = as_text(post.get("channel_id"))
    is_direct = types.get(channel) == DIRECT
    # A direct chat is one conversation, whatever is answered in a thread of it.
    thread = None if is_direct else as_text(post.get("root_id")) or None
    kind = DM if is_direct else GROUP
    return Route(platform=PLATFORM, kind=kind, chat=channel, account=me.label, thread=thread)


def _parse_deletion(
    post: Json, me: MattermostIdentity, types: Mapping[str, str]
) -> ChannelEvent | IgnoredEvent:
    if post.get("user_id") == me.id:
        return IgnoredEvent(kind="a deleted message of the agent")
    name = as_text(post.get("id"))
    return MessageDeleted(event=f"{name}:deleted", route=_route_of(post, me, types), original=name)


def _parse_message(
    post: Json, me: MattermostIdentity, types: Mapping[str, str], name: str
) -> MessageReceived:
    route, text = _route_of(post, me, types), as_text(post.get("message"))
    files, lines = _read_files(post)
    quoted = tuple(_read_quoted(post))
    own = _read_own_text(text, me)
    is_empty = not (own or files or lines or quoted)
    kind = as_text(post.get("type")) or "a message without content"
    return MessageReceived(
        event=as_text(post["id"]),
        route=route,
        sender=MessageSender(id=as_text(post["user_id"]), name=name),
        message=as_text(post["id"]),
        text=own,
        lines=tuple(lines),
        quoted=quoted,
        unsupported=(kind,) if is_empty else (),
        files=tuple(files),
        addressed=route.kind == DM or _mentions(text, me),
        sent_at=datetime.fromtimestamp(int(post.get("create_at") or 0) / 1000, UTC),
    )


def _mention_pattern(me: MattermostIdentity) -> str:
    return rf"(?<![\w@])@{re.escape(me.name)}(?![\w-])"


def _mentions(text: str, me: MattermostIdentity) -> bool:
    return re.search(_mention_pattern(me), text, re.IGNORECASE) is not None


def _read_own_text(text: str, me: MattermostIdentity) -> str:
    """Return the sender's text without a mention that only addresses the agent."""
    own = re.sub(rf"^\s*{_mention_pattern(me)}[,:]?\s*", "", text, flags=re.IGNORECASE) or text
    own = own.strip()
    # The client keeps what begins with a slash to itself, unless a blank comes before it.
    word = own[1:].split(maxsplit=1)[:1]
    return f"/{own[1:]}" if own.startswith("!") and word and word[0] in me.commands else own


def _read_files(post: Json) -> tuple[list[IncomingFile], list[str]]:
    """Return the files of a post, and a line for each that it does not describe."""
    told = as_objects(as_object(post.get("metadata")).get("files"))
    files = [
        IncomingFile(
            id=as_text(one.get("id")),
            name=as_text(one.get("name")) or "file",
            media_type=as_text(one.get("mime_type")) or "application/octet-stream",
            size=int(one.get("size") or 0),
        )
        for one in told
        if one.get("id")
    ]
    known = {one.id for one in files}
    named = [as_text(one) for one in as_list(post.get("file_ids"))]
    files += [
        IncomingFile(id=one, name="file", media_type="application/octet-stream", size=0)
        for one in named
        if one and one not in known
    ]
    return files, _describe_others(post)


def _describe_others(post: Json) -> list[str]:
    priority = as_object(as_object(post.get("metadata")).get("priority")).get("priority")
    return [format_titled_item("marked", priority)] if priority else []


def _read_quoted(post: Json) -> Sequence[Quoted]:
    """Return messages that a link shows, and cards of integrations."""
    found: list[Quoted] = []
    for embed in as_objects(as_object(post.get("metadata")).get("embeds")):
        if embed.get("type") == "permalink":
            shown = as_object(as_object(embed.get("data")).get("post"))
            found.append(quote_forwarded("", as_text(shown.get("message"))))
    for card in as_objects(as_object(post.get("props")).get("attachments")):
        parts = (as_text(card.get(name)) for name in ("pretext", "title", "text", "fallback"))
        if text := "\n".join(filter(None, parts)):
            found.append(Quoted(source="Card", text=text))
    return found
