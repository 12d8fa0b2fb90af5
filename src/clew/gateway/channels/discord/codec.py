"""What Discord's gateway dispatches, as events; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.chat import DM, GROUP, Deleted, Edited, Event, File, Heard, Pressed, Sender
from clew.core.route import Route
from clew.gateway.channels.discord.messages import (
    changed,
    new,
    pressed_data,
    render,
    repeated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "INTENTS",
    "PLATFORM",
    "Me",
    "changed",
    "commands",
    "moment_of",
    "new",
    "parent_of",
    "parents",
    "parse",
    "place_of",
    "render",
    "repeated",
    "snowflake_of",
    "target",
]

PLATFORM = "discord"
#: Guilds, messages in them and in direct chats, and what they say.
INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15

#: Messages that somebody wrote: plain ones and replies.
_SAID = (0, 19)
_COMMAND, _COMPONENT = 2, 3
_THREADS = (10, 11, 12)
#: Milliseconds since the epoch at which Discord's ids begin.
_EPOCH = 1_420_070_400_000

_REFERENCE = re.compile(r"<(?:(@!?|@&|#)(\d+)|a?(:\w+:)\d+)>")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The bot."""

    id: str
    #: How routes name it.
    label: str | None = None


def place_of(dispatch: Mapping[str, Any]) -> tuple[str, ...]:
    """The channels that have to be known before a dispatch can be read."""
    told: Json = dispatch.get("d") or {}
    named = dispatch.get("t") in (
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "INTERACTION_CREATE",
    )
    return (str(told["channel_id"]),) if named and told.get("guild_id") else ()


def parents(dispatch: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Which channels a dispatch tells of, and of which channel each is a thread."""
    told: Json = dispatch.get("d") or {}
    every: list[Json] = []
    match dispatch.get("t"):
        case "GUILD_CREATE":
            every = [*(told.get("channels") or ()), *(told.get("threads") or ())]
        case "THREAD_LIST_SYNC":
            every = told.get("threads") or []
        case "CHANNEL_CREATE" | "THREAD_CREATE":
            every = [told]
        case _:
            pass
    return {str(one["id"]): parent_of(one) for one in every}


def parent_of(channel: Mapping[str, Any]) -> str | None:
    """The channel that it is a thread of."""
    return str(channel["parent_id"]) if channel.get("type") in _THREADS else None


def parse(dispatch: Mapping[str, Any], me: Me, known: Mapping[str, str | None]) -> Event | None:
    """The event that a dispatch tells of; ``None`` for what is of no interest."""
    told: Json = dispatch.get("d") or {}
    match dispatch.get("t"):
        case "MESSAGE_CREATE":
            return _heard(told, me, known)
        case "MESSAGE_UPDATE":
            return _edited(told, me, known)
        case "MESSAGE_DELETE":
            return Deleted(
                event=f"{told['id']}:deleted",
                route=_route(told, me, known),
                original=str(told["id"]),
            )
        case "INTERACTION_CREATE" if told.get("type") == _COMMAND:
            return _command(told, me, known)
        case "INTERACTION_CREATE" if told.get("type") == _COMPONENT:
            return _pressed(told, me, known)
        case _:
            return None


def _route(told: Json, me: Me, known: Mapping[str, str | None]) -> Route:
    channel = str(told["channel_id"])
    parent = known.get(channel)
    return Route(
        platform=PLATFORM,
        kind=GROUP if told.get("guild_id") else DM,
        chat=parent or channel,
        account=me.label,
        thread=channel if parent else None,
    )


def target(route: Route) -> str:
    """The channel that is written to."""
    return route.thread or route.chat


def _heard(message: Json, me: Me, known: Mapping[str, str | None]) -> Heard | None:
    author: Json = message.get("author") or {}
    # Other bots are not answered, so that two of them do not talk for ever.
    if not author or author.get("bot") or message.get("webhook_id"):
        return None
    if message.get("type", 0) not in _SAID:
        return None
    text = _text(message, me)
    files = tuple(_file(message, each) for each in message.get("attachments") or ())
    if not (text or files):
        return None
    return Heard(
        event=str(message["id"]),
        route=_route(message, me, known),
        sender=_sender(author, message.get("member")),
        message=str(message["id"]),
        text=text,
        files=files,
        addressed=not message.get("guild_id") or _addressed(message, me),
        sent_at=moment_of(str(message["id"])),
    )


def _edited(message: Json, me: Me, known: Mapping[str, str | None]) -> Edited | None:
    # Discord tells of previews of links in the same way.
    at = message.get("edited_timestamp")
    heard = _heard(message, me, known) if at else None
    if heard is None:
        return None
    return Edited.of(heard, at=at)


def _sender(user: Json, member: Json | None) -> Sender:
    name = (member or {}).get("nick") or user.get("global_name") or user.get("username") or ""
    return Sender(id=str(user["id"]), name=name)


def _addressed(message: Json, me: Me) -> bool:
    answered: Json = message.get("referenced_message") or {}
    author: Json = answered.get("author") or {}
    mentioned: list[Json] = message.get("mentions") or []
    return str(author.get("id")) == me.id or any(str(each["id"]) == me.id for each in mentioned)


def _text(message: Json, me: Me) -> str:
    raw: str = message.get("content") or ""
    # The mention that only addresses the agent is none of what is said to it.
    raw = re.sub(rf"^\s*<@!?{re.escape(me.id)}>[,:]?\s*", "", raw)
    mentioned: list[Json] = message.get("mentions") or []
    names = {str(each["id"]): _sender(each, each.get("member")).name for each in mentioned}
    names[me.id] = "you"
    return _REFERENCE.sub(lambda found: _referred(found, names), raw).strip() or _described(message)


def _referred(found: re.Match[str], names: Mapping[str, str]) -> str:
    sign, id_, emoji = found.groups()
    if emoji is not None:
        return emoji
    return f"{sign[0]}{names.get(id_, id_)}"


def _described(message: Json) -> str:
    """What has no text, in words."""
    stickers: list[Json] = message.get("sticker_items") or []
    return " ".join(f"[sticker {each.get('name', '')}]" for each in stickers)


def _file(message: Json, attachment: Json) -> File:
    return File(
        # Its address is good for a day: it is asked for when the file is fetched.
        id=f"{message['channel_id']}/{message['id']}/{attachment['id']}",
        name=attachment.get("filename") or "file",
        media_type=(attachment.get("content_type") or "application/octet-stream").partition(";")[0],
        size=attachment.get("size"),
    )


def _who(interaction: Json) -> Sender:
    member: Json = interaction.get("member") or {}
    return _sender(interaction.get("user") or member["user"], member)


def _command(interaction: Json, me: Me, known: Mapping[str, str | None]) -> Heard:
    data: Json = interaction["data"]
    values = [str(each.get("value", "")) for each in data.get("options") or ()]
    id_ = str(interaction["id"])
    return Heard(
        event=f"command:{id_}",
        route=_route(interaction, me, known),
        sender=_who(interaction),
        message=id_,
        text=" ".join([f"/{data['name']}", *values]).strip(),
        sent_at=moment_of(id_),
    )


def _pressed(interaction: Json, me: Me, known: Mapping[str, str | None]) -> Pressed | None:
    data = pressed_data(interaction["data"]["custom_id"])
    if data is None:
        return None
    return Pressed(
        event=f"press:{interaction['id']}",
        route=_route(interaction, me, known),
        sender=_who(interaction),
        message=str(interaction["message"]["id"]),
        data=data,
    )


def moment_of(snowflake: str) -> datetime:
    """When an id of Discord's was made."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + _EPOCH) / 1000, UTC)


def snowflake_of(moment: datetime) -> str:
    """The first id that could be made at a moment."""
    return str((int(moment.timestamp() * 1000) - _EPOCH) << 22)


def commands(listed: Sequence[tuple[str, str]]) -> list[Json]:
    """The slash commands, as Discord is told of them."""
    argument = {"type": 3, "name": "text", "description": "What follows it", "required": False}
    return [
        {"type": 1, "name": name, "description": says[:100] or name, "options": [argument]}
        for name, says in listed
    ]
