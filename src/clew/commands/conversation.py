"""Chat commands that change a conversation or move a route."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.commands.arguments import WAITING_FOR_TURN, parse_number
from clew.commands.registry import ChatCommandReply
from clew.core import scope as scopes
from clew.core.route import LOCAL
from clew.engine.queued_commands import parse_compaction_note
from clew.engine.validation import validate_title
from clew.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.commands.registry import CommandContext
    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId

#: Conversations per list.
LIST_LIMIT = 10


async def start_conversation(ctx: CommandContext, argument: str) -> ChatCommandReply:
    title = validate_title(argument) if argument else None
    conversation = await ctx.engine.start_new_conversation(ctx.required_route)
    text = await _describe_start(ctx, conversation, title)
    return ChatCommandReply(
        text=f"{text}\n{await _describe_model(ctx, conversation)}", conversation=conversation
    )


async def _describe_start(
    ctx: CommandContext, conversation: ConversationId, title: str | None
) -> str:
    if title is None:
        return "New conversation; the previous one is kept."
    try:
        await ctx.engine.titles.request_title(conversation, title)
    except UsageError as error:
        return f"New conversation, without the title: {error}."
    return f"New conversation: {title}"


async def _describe_model(ctx: CommandContext, conversation: ConversationId) -> str:
    """Return the name of a conversation's model and the size of its ctx."""
    name = await ctx.engine.model_overrides.get_model_name(conversation)
    window = (await ctx.engine.get_context_size(conversation)).window
    if window is None:
        return f"Model: {name}; its context size is unknown."
    return f"Model: {name}, with a context of {window:,} tokens."


async def compress_context(ctx: CommandContext, argument: str) -> ChatCommandReply:
    filed = await ctx.engine.sessions.queue_compaction(
        ctx.required_conversation, focus=argument or None
    )
    note = await ctx.wait_for_command(filed)
    if note is None:
        return ctx.reply(WAITING_FOR_TURN)
    return ctx.reply(f"{parse_compaction_note(note).outcome_text}.")


async def undo_exchanges(ctx: CommandContext, argument: str) -> ChatCommandReply:
    back = parse_number(argument, default=1)
    note = await ctx.wait_for_command(
        await ctx.engine.sessions.queue_undo(ctx.required_conversation, back=back)
    )
    if note is None:
        return ctx.reply(WAITING_FOR_TURN)
    return ctx.reply(f"Undone, back to before: {_quote_line(json.loads(note)['text'])}")


async def retry_message(ctx: CommandContext, argument: str) -> ChatCommandReply:
    filed, again = await ctx.engine.sessions.queue_retry(ctx.required_conversation, route=ctx.route)
    note = await ctx.wait_for_command(filed)
    if note is None:
        return ctx.reply(WAITING_FOR_TURN)
    text = f"Asking again: {_quote_line(json.loads(note)['text'])}"
    return ChatCommandReply(text=text, conversation=ctx.required_conversation, accepted=again)


async def branch_conversation(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if ctx.route is not None:
        await _name_original(ctx)
    new_one = await ctx.engine.sessions.branch_conversation(
        ctx.required_conversation,
        title=argument or None,
        route=ctx.route,
        viewer=ctx.viewer,
    )
    where = "You are in the copy now" if ctx.route is not None else f"The copy is {new_one}"
    copied = "It begins with the context of the original"
    return ChatCommandReply(
        text=f"{where}; the original is {ctx.required_conversation}. {copied}.",
        conversation=new_one,
    )


async def _name_original(ctx: CommandContext) -> None:
    """Give an untitled original its NAME as title: the name leads to the copy from now on."""
    view = await ctx.engine.get_view(ctx.required_conversation, viewer=ctx.viewer)
    route = ctx.required_route
    if view.conversation.title is None and route.platform == LOCAL:
        with suppress(UsageError):  # another one has that title
            await ctx.engine.titles.request_title(ctx.required_conversation, route.chat)


async def rewind_conversation(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if not argument:
        raise UsageError("say to which entry: /rewind 12 goes back to right after entry 12")
    to = parse_number(argument)
    note = await ctx.wait_for_command(
        await ctx.engine.sessions.queue_rewind(ctx.required_conversation, to=to)
    )
    return ctx.reply(WAITING_FOR_TURN if note is None else f"Rewound to right after entry {to}.")


async def set_title(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if not argument:
        view = await ctx.engine.get_view(ctx.required_conversation, viewer=ctx.viewer)
        return ctx.reply(view.conversation.title or "This conversation has no title yet.")
    wanted = validate_title(argument)
    target = ctx.conversation_id or ctx.required_route
    found = await ctx.engine.titles.request_title(target, wanted)
    return ChatCommandReply(text=f"This conversation is called: {wanted}", conversation=found)


async def resume_conversation(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if not argument:
        raise UsageError("say which one: /resume 2, /resume TITLE; /sessions lists them")
    conversation = await _resolve_argument(ctx, argument)
    await ctx.engine.sessions.resume_conversation(
        ctx.required_route, conversation, viewer=ctx.viewer
    )
    view = await ctx.engine.get_view(conversation, viewer=ctx.viewer)
    name = view.conversation.title or conversation
    return ChatCommandReply(text=f"Continuing: {name}", conversation=conversation)


async def _resolve_argument(ctx: CommandContext, argument: str) -> ConversationId:
    """Return the conversation of a list number, a title, a unique part of a title, or an id."""
    if argument.isascii() and argument.isdigit():
        listed = (await ctx.engine.list_conversations(viewer=ctx.viewer, limit=LIST_LIMIT)).items
        if not 1 <= int(argument) <= len(listed):
            raise UsageError(f"there is no number {argument}: /sessions shows {len(listed)}")
        return listed[int(argument) - 1].id
    titled = (
        await ctx.engine.list_conversations(viewer=ctx.viewer, title=argument, limit=50)
    ).items
    if found := _match_title(titled, argument):
        return found
    try:
        return await ctx.engine.resolve_name(argument, viewer=ctx.viewer)
    except NotFound:
        raise UsageError(
            f"there is no conversation {argument!r} here: /sessions lists them"
        ) from None


def _match_title(found: Sequence[Conversation], argument: str) -> ConversationId | None:
    exact = [one for one in found if (one.title or "").lower() == argument.lower()]
    fitting = exact or list(found)
    if len(fitting) > 1:
        titles = ", ".join(_quote_line(one.title or one.id) for one in fitting[:5])
        raise UsageError(
            f"{len(fitting)} titles fit {argument!r}: {titles}; write more of the title"
        )
    return fitting[0].id if fitting else None


async def choose_model(ctx: CommandContext, argument: str) -> ChatCommandReply:
    models = ctx.engine.model_overrides
    if not argument:
        chosen = await models.get_model_name(ctx.required_conversation)
        return ctx.reply(f"The model is {chosen}. Available: {', '.join(models.offered)}.")
    # Otherwise a stranger could choose what the owner pays for.
    if ctx.viewer != scopes.LOCAL and argument not in models.offered:
        raise UsageError(
            f"{argument!r} is not available here: choose from {', '.join(models.offered)}"
        )
    await models.choose_model(ctx.required_conversation, argument)
    return ctx.reply(f"From the next message on, {argument} answers here.")


def _quote_line(text: str) -> str:
    one_line = " ".join(text.split())
    return f"“{one_line if len(one_line) <= 80 else one_line[:79] + '…'}”"
