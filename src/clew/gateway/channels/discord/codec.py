"""Codec of Discord: gateway dispatches to events; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clew.core.channel_events import (
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
from clew.core.payload import as_object
from clew.core.route import Route
from clew.gateway.channels.discord.incoming import get_display_name, read_content, resolve_mentions
from clew.gateway.channels.discord.messages import (
    build_edit,
    build_file,
    build_message,
    build_outcome,
    build_upload,
    parse_button_data,
    render,
    render_file,
    with_repeat_notice,
)
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "INTENTS",
    "PLATFORM",
    "DiscordIdentity",
    "build_commands",
    "build_edit",
    "build_file",
    "build_message",
    "build_outcome",
    "build_upload",
    "find_mentioned_roles",
    "find_own_roles",
    "find_required_channels",
    "get_parent",
    "get_target_channel",
    "parse_dispatch",
    "read_parents",
    "render",
    "render_file",
    "snowflake_to_time",
    "time_to_snowflake",
    "with_repeat_notice",
]

PLATFORM = "discord"
#: Guilds, messages in guilds and direct messages, and message content.
INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15

#: Message types that people write: plain messages and replies.
_USER_MESSAGES = (0, 19)
#: Service messages: members, pins, calls, boosts, threads, stages …
_SERVICE_MESSAGES = frozenset({*range(1, 19), *range(20, 33), 36, 37, 38, 39, 44, 46})
_COMMAND_INTERACTION, _COMPONENT_INTERACTION = 2, 3
_THREAD_TYPES = (10, 11, 12)
#: Milliseconds since the Unix epoch at which Discord's epoch begins.
_DISCORD_EPOCH = 1_420_070_400_000

Json = dict[str, Any]


class DiscordIdentity(Record):
    """The bot's identity."""

    id: str
    #: The account's name in routes.
    label: str | None = None
    #: The bot's own roles, one per server.
    roles: frozenset[str] = frozenset()


def find_mentioned_roles(dispatch: Mapping[str, Any]) -> tuple[str | None, frozenset[str]]:
    """Return the roles that a message mentions, and their server."""
    told: Json = dispatch.get("d") or {}
    if dispatch.get("t") not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        return None, frozenset()
    named = frozenset(map(str, told.get("mention_roles") or ()))
    guild = told.get("guild_id")
    return (str(guild) if guild and named else None), named


def find_own_roles(roles: Sequence[Json], me: DiscordIdentity) -> frozenset[str]:
    """Return the bot's own role among the roles of a server."""
    return frozenset(
        str(role["id"]) for role in roles if str(as_object(role.get("tags")).get("bot_id")) == me.id
    )


def find_required_channels(dispatch: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the channels that must be known before a dispatch can be parsed."""
    told: Json = dispatch.get("d") or {}
    named = dispatch.get("t") in (
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_DELETE",
        "INTERACTION_CREATE",
    )
    return (str(told["channel_id"]),) if named and told.get("guild_id") else ()


def read_parents(dispatch: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Return the channels in a dispatch, each with its parent if it is a thread."""
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
    return {str(one["id"]): get_parent(one) for one in every}


def get_parent(channel: Mapping[str, Any]) -> str | None:
    """Return the parent channel of a thread; ``None`` for other channels."""
    return str(channel["parent_id"]) if channel.get("type") in _THREAD_TYPES else None


def parse_dispatch(
    dispatch: Mapping[str, Any], me: DiscordIdentity, known: Mapping[str, str | None]
) -> ChannelEvent | IgnoredEvent:
    """Parse a dispatch into an event, or into ``IgnoredEvent`` with its kind."""
    told: Json = dispatch.get("d") or {}
    match dispatch.get("t"):
        case "MESSAGE_CREATE":
            return _parse_message(told, me, known)
        case "MESSAGE_UPDATE":
            return _parse_edit(told, me, known)
        case "MESSAGE_DELETE":
            return MessageDeleted(
                event=f"{told['id']}:deleted",
                route=_route_of(told, me, known),
                original=str(told["id"]),
            )
        case "INTERACTION_CREATE" if told.get("type") == _COMMAND_INTERACTION:
            return _parse_command(told, me, known)
        case "INTERACTION_CREATE" if told.get("type") == _COMPONENT_INTERACTION:
            return _parse_button(told, me, known)
        case "INTERACTION_CREATE":
            return IgnoredEvent(kind=f"interaction of type {told.get('type')}")
        case kind:
            return IgnoredEvent(kind=f"dispatch: {kind}")


def _route_of(told: Json, me: DiscordIdentity, known: Mapping[str, str | None]) -> Route:
    channel = str(told["channel_id"])
    parent = known.get(channel)
    return Route(
        platform=PLATFORM,
        kind=GROUP if told.get("guild_id") else DM,
        chat=parent or channel,
        account=me.label,
        thread=channel if parent else None,
    )


def get_target_channel(route: Route) -> str:
    """Return the id of the channel to post to."""
    return route.thread or route.chat


def _parse_message(
    message: Json, me: DiscordIdentity, known: Mapping[str, str | None]
) -> MessageReceived | IgnoredEvent:
    author: Json = message.get("author") or {}
    # Other bots are not answered, so that two bots do not talk for ever.
    if not author:
        return IgnoredEvent(kind="a message of nobody")
    if author.get("bot") or message.get("webhook_id"):
        return IgnoredEvent(kind="a message of a bot")
    kind = message.get("type", 0)
    if kind in _SERVICE_MESSAGES:
        return IgnoredEvent(kind=f"service: message of type {kind}")
    content = read_content(message, message, me=me.id, roles=me.roles)
    text = _read_own_text(message, me)
    # Such as a server sends where the agent may not read message content.
    strange = () if kind in _USER_MESSAGES else (f"message of type {kind}",)
    if content.is_empty and not text and not strange:
        strange = ("a message without content",)
    return MessageReceived(
        event=str(message["id"]),
        route=_route_of(message, me, known),
        sender=_parse_sender(author, message.get("member")),
        message=str(message["id"]),
        text=text,
        lines=content.lines,
        quoted=content.quoted,
        unsupported=(*content.unsupported, *strange),
        files=content.files,
        addressed=not message.get("guild_id") or _is_addressed(message, me),
        sent_at=snowflake_to_time(str(message["id"])),
    )


def _parse_edit(
    message: Json, me: DiscordIdentity, known: Mapping[str, str | None]
) -> MessageEdited | IgnoredEvent:
    # Discord reports link previews in the same way.
    at = message.get("edited_timestamp")
    if not at:
        return IgnoredEvent(kind="preview of a link")
    heard = _parse_message(message, me, known)
    if isinstance(heard, IgnoredEvent):
        return heard
    return MessageEdited.from_message(heard, at=at)


def _parse_sender(user: Json, member: Json | None) -> MessageSender:
    return MessageSender(id=str(user["id"]), name=get_display_name(user, member))


def _is_addressed(message: Json, me: DiscordIdentity) -> bool:
    answered: Json = message.get("referenced_message") or {}
    author: Json = answered.get("author") or {}
    mentioned: list[Json] = message.get("mentions") or []
    roles = frozenset(map(str, message.get("mention_roles") or ()))
    return (
        str(author.get("id")) == me.id
        or any(str(each["id"]) == me.id for each in mentioned)
        or bool(roles & me.roles)
    )


def _read_own_text(message: Json, me: DiscordIdentity) -> str:
    """Return the sender's text without a leading mention that only addresses the agent."""
    raw: str = message.get("content") or ""
    ours = "|".join([f"@!?{re.escape(me.id)}", *(f"@&{re.escape(role)}" for role in me.roles)])
    stripped = re.sub(rf"^\s*<(?:{ours})>[,:]?\s*", "", raw)
    found = resolve_mentions(stripped, message, me=me.id, roles=me.roles)
    return found or resolve_mentions(raw, message, me=me.id, roles=me.roles)


def _interaction_sender(interaction: Json) -> MessageSender:
    member: Json = interaction.get("member") or {}
    return _parse_sender(interaction.get("user") or member["user"], member)


def _parse_command(
    interaction: Json, me: DiscordIdentity, known: Mapping[str, str | None]
) -> MessageReceived:
    data: Json = interaction["data"]
    values = [str(each.get("value", "")) for each in data.get("options") or ()]
    id_ = str(interaction["id"])
    return MessageReceived(
        event=f"command:{id_}",
        route=_route_of(interaction, me, known),
        sender=_interaction_sender(interaction),
        message=id_,
        text=" ".join([f"/{data['name']}", *values]).strip(),
        sent_at=snowflake_to_time(id_),
    )


def _parse_button(
    interaction: Json, me: DiscordIdentity, known: Mapping[str, str | None]
) -> ButtonPressed | IgnoredEvent:
    data = parse_button_data(interaction["data"]["custom_id"])
    if data is None:
        return IgnoredEvent(kind="a button that is not the agent's")
    return ButtonPressed(
        event=f"press:{interaction['id']}",
        route=_route_of(interaction, me, known),
        sender=_interaction_sender(interaction),
        message=str(interaction["message"]["id"]),
        data=data,
    )


def snowflake_to_time(snowflake: str) -> datetime:
    """Return the time at which a Discord id was created."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + _DISCORD_EPOCH) / 1000, UTC)


def time_to_snowflake(moment: datetime) -> str:
    """Return the first id that could be created at a time."""
    return str((int(moment.timestamp() * 1000) - _DISCORD_EPOCH) << 22)


def build_commands(listed: Sequence[tuple[str, str]]) -> list[Json]:
    """Return the definitions of the slash commands for Discord."""
    argument = {"type": 3, "name": "text", "description": "What follows it", "required": False}
    return [
        {"type": 1, "name": name, "description": says[:100] or name, "options": [argument]}
        for name, says in listed
    ]
