"""What Discord's gateway dispatches, as events; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.chat import (
    DM,
    GROUP,
    ButtonPressed,
    ChannelEvent,
    IgnoredEvent,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.route import Route
from clew.gateway.channels.discord.content import content_of, name_of, readable
from clew.gateway.channels.discord.messages import (
    changed,
    new,
    outcome,
    pressed_data,
    render,
    repeated,
)
from clew.gateway.payload import obj

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
    "outcome",
    "parent_of",
    "parents",
    "parse",
    "place_of",
    "render",
    "repeated",
    "role_of",
    "roles_named",
    "snowflake_of",
    "target",
]

PLATFORM = "discord"
#: Guilds, messages in them and in direct chats, and what they say.
INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15

#: Messages that somebody wrote: plain ones and replies.
_SAID = (0, 19)
#: Messages by which Discord reports something: members, pins, calls, boosts, threads, stages …
_SERVICE = frozenset({*range(1, 19), *range(20, 33), 36, 37, 38, 39, 44, 46})
_COMMAND, _COMPONENT = 2, 3
_THREADS = (10, 11, 12)
#: Milliseconds since the epoch at which Discord's ids begin.
_EPOCH = 1_420_070_400_000

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Me:
    """The bot."""

    id: str
    #: How routes name it.
    label: str | None = None
    #: Its own roles, one in each server that it is known of.
    roles: frozenset[str] = frozenset()


def roles_named(dispatch: Mapping[str, Any]) -> tuple[str | None, frozenset[str]]:
    """The roles that a message mentions, and the server that they are of."""
    told: Json = dispatch.get("d") or {}
    if dispatch.get("t") not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        return None, frozenset()
    named = frozenset(map(str, told.get("mention_roles") or ()))
    guild = told.get("guild_id")
    return (str(guild) if guild and named else None), named


def role_of(roles: Sequence[Json], me: Me) -> frozenset[str]:
    """The role of a server that is the bot's own."""
    return frozenset(
        str(role["id"]) for role in roles if str(obj(role.get("tags")).get("bot_id")) == me.id
    )


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


def parse(
    dispatch: Mapping[str, Any], me: Me, known: Mapping[str, str | None]
) -> ChannelEvent | IgnoredEvent:
    """The event that a dispatch tells of, or what it was that says nothing to the agent."""
    told: Json = dispatch.get("d") or {}
    match dispatch.get("t"):
        case "MESSAGE_CREATE":
            return _heard(told, me, known)
        case "MESSAGE_UPDATE":
            return _edited(told, me, known)
        case "MESSAGE_DELETE":
            return MessageDeleted(
                event=f"{told['id']}:deleted",
                route=_route(told, me, known),
                original=str(told["id"]),
            )
        case "INTERACTION_CREATE" if told.get("type") == _COMMAND:
            return _command(told, me, known)
        case "INTERACTION_CREATE" if told.get("type") == _COMPONENT:
            return _pressed(told, me, known)
        case "INTERACTION_CREATE":
            return IgnoredEvent(kind=f"interaction of type {told.get('type')}")
        case kind:
            return IgnoredEvent(kind=f"dispatch: {kind}")


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


def _heard(
    message: Json, me: Me, known: Mapping[str, str | None]
) -> MessageReceived | IgnoredEvent:
    author: Json = message.get("author") or {}
    # Other bots are not answered, so that two of them do not talk for ever.
    if not author:
        return IgnoredEvent(kind="a message of nobody")
    if author.get("bot") or message.get("webhook_id"):
        return IgnoredEvent(kind="a message of a bot")
    kind = message.get("type", 0)
    if kind in _SERVICE:
        return IgnoredEvent(kind=f"service: message of type {kind}")
    content = content_of(message, message, me=me.id, roles=me.roles)
    text = _own(message, me)
    # Such as a server sends where the agent may not read what is said.
    strange = () if kind in _SAID else (f"message of type {kind}",)
    if content.empty and not text and not strange:
        strange = ("a message without content",)
    return MessageReceived(
        event=str(message["id"]),
        route=_route(message, me, known),
        sender=_sender(author, message.get("member")),
        message=str(message["id"]),
        text=text,
        lines=content.lines,
        quoted=content.quoted,
        unsupported=(*content.unsupported, *strange),
        files=content.files,
        addressed=not message.get("guild_id") or _addressed(message, me),
        sent_at=moment_of(str(message["id"])),
    )


def _edited(message: Json, me: Me, known: Mapping[str, str | None]) -> MessageEdited | IgnoredEvent:
    # Discord tells of previews of links in the same way.
    at = message.get("edited_timestamp")
    if not at:
        return IgnoredEvent(kind="preview of a link")
    heard = _heard(message, me, known)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=at)


def _sender(user: Json, member: Json | None) -> MessageSender:
    return MessageSender(id=str(user["id"]), name=name_of(user, member))


def _addressed(message: Json, me: Me) -> bool:
    answered: Json = message.get("referenced_message") or {}
    author: Json = answered.get("author") or {}
    mentioned: list[Json] = message.get("mentions") or []
    roles = frozenset(map(str, message.get("mention_roles") or ()))
    return (
        str(author.get("id")) == me.id
        or any(str(each["id"]) == me.id for each in mentioned)
        or bool(roles & me.roles)
    )


def _own(message: Json, me: Me) -> str:
    """What the sender wrote, without the mention that only addresses the agent."""
    raw: str = message.get("content") or ""
    ours = "|".join([f"@!?{re.escape(me.id)}", *(f"@&{re.escape(role)}" for role in me.roles)])
    stripped = re.sub(rf"^\s*<(?:{ours})>[,:]?\s*", "", raw)
    found = readable(stripped, message, me=me.id, roles=me.roles)
    return found or readable(raw, message, me=me.id, roles=me.roles)


def _who(interaction: Json) -> MessageSender:
    member: Json = interaction.get("member") or {}
    return _sender(interaction.get("user") or member["user"], member)


def _command(interaction: Json, me: Me, known: Mapping[str, str | None]) -> MessageReceived:
    data: Json = interaction["data"]
    values = [str(each.get("value", "")) for each in data.get("options") or ()]
    id_ = str(interaction["id"])
    return MessageReceived(
        event=f"command:{id_}",
        route=_route(interaction, me, known),
        sender=_who(interaction),
        message=id_,
        text=" ".join([f"/{data['name']}", *values]).strip(),
        sent_at=moment_of(id_),
    )


def _pressed(
    interaction: Json, me: Me, known: Mapping[str, str | None]
) -> ButtonPressed | IgnoredEvent:
    data = pressed_data(interaction["data"]["custom_id"])
    if data is None:
        return IgnoredEvent(kind="a button that is not the agent's")
    return ButtonPressed(
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
