"""Chat commands of the control lane: answered at once, also while a turn runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.commands.conversation import LIST_LIMIT
from clew.core.access import AccessStatus
from clew.core.turn import TurnState
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.commands.registry import ChatCommandReply, CommandContext
    from clew.core.access import Person
    from clew.core.conversation import Conversation


async def stop_turn(ctx: CommandContext, argument: str) -> ChatCommandReply:
    stopped = ctx.conversation_id is not None and await ctx.engine.request_stop(ctx.conversation_id)
    return ctx.reply("Stopped." if stopped else "Nothing is running here.")


async def list_sessions(ctx: CommandContext, argument: str) -> ChatCommandReply:
    page = await ctx.engine.list_conversations(viewer=ctx.viewer, title=argument, limit=LIST_LIMIT)
    if not page.items:
        return ctx.reply("There are no conversations" + (" like that." if argument else " yet."))
    lines = [
        _format_conversation(n, one, here=one.id == ctx.conversation_id)
        for n, one in enumerate(page.items, 1)
    ]
    if argument:
        # Numbers refer to the whole list.
        lines = [
            _format_conversation(None, one, here=one.id == ctx.conversation_id)
            for one in page.items
        ]
    if page.next is not None:
        lines.append("There are more: /sessions WORDS finds them by their titles.")
    return ctx.reply("\n".join(lines))


def _format_conversation(place: int | None, one: Conversation, *, here: bool) -> str:
    name = one.title or "(no title)"
    mark = " (here)" if here else ""
    start = "" if place is None else f"{place}. "
    return f"{start}{name}{mark}, {one.last_seq} entries, {one.updated_at:%Y-%m-%d %H:%M}, {one.id}"


async def show_queue(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if ctx.conversation_id is None or not (
        waiting := await ctx.engine.list_queue(ctx.conversation_id)
    ):
        return ctx.reply("Nothing waits.")
    lines = [f"{n}. {' '.join(item.text.split())[:80]}" for n, item in enumerate(waiting, 1)]
    return ctx.reply("\n".join(lines))


_ACTIVITIES = {
    None: "nothing",
    TurnState.RUNNING: "answering; /stop ends it",
    TurnState.WAITING: "waiting for /approve or /deny",
}


async def show_status(ctx: CommandContext, argument: str) -> ChatCommandReply:
    view = await ctx.engine.get_view(ctx.required_conversation, viewer=ctx.viewer)
    turn = await ctx.engine.get_unfinished_turn(ctx.required_conversation)
    waiting = await ctx.engine.list_queue(ctx.required_conversation)
    trace = await ctx.engine.find_trace(ctx.required_conversation)
    head = view.sessions[-1]
    rows = [
        (
            "conversation",
            f"{view.conversation.title or '(no title)'}, {ctx.required_conversation}",
        ),
        ("session", head.id if head.is_open else f"{head.id}, ended ({head.end_reason})"),
        ("entries", str(view.conversation.last_seq)),
        *([] if view.imported_from is None else [("imported from", view.imported_from)]),
        (
            "model",
            await ctx.engine.model_overrides.get_model_name(ctx.required_conversation),
        ),
        ("doing", _ACTIVITIES[None if turn is None else turn.state]),
        ("waiting", str(len(waiting))),
        *([] if trace is None else [("trace", trace)]),
        *(("warning", warning) for warning in ctx.commands.warnings),
    ]
    return ctx.reply("\n".join(f"{name}: {value}" for name, value in rows))


async def show_usage(ctx: CommandContext, argument: str) -> ChatCommandReply:
    used = (await ctx.engine.get_view(ctx.required_conversation, viewer=ctx.viewer)).usage
    text = (
        f"Tokens in: {used.input_tokens:,} ({used.cached_tokens:,} of them cached), "
        f"out: {used.output_tokens:,}."
    )
    if used.cost_micros is not None:
        text += f" Cost: ${used.cost_micros / 1_000_000:.4f}."
    return ctx.reply(text)


async def manage_pairing(ctx: CommandContext, argument: str) -> ChatCommandReply:
    word, _, user = argument.partition(" ")
    if not argument:
        return ctx.reply(
            "\n".join(map(_format_person, await ctx.engine.pairing.list_people())) or "Nobody yet."
        )
    if word == "remove" and user.strip():
        return ctx.reply(await _revoke_access(ctx, user.strip()))
    person = await ctx.engine.pairing.approve_code(argument, by=ctx.viewer)
    return ctx.reply(f"Access granted: {person.name or 'somebody'}, id {person.user}.")


def _format_person(person: Person) -> str:
    name = person.name or "(no name)"
    where = f"{person.account.channel} {person.user}"
    return f"{person.standing.value}: {name}, {where}, {person.changed_at:%Y-%m-%d %H:%M}"


async def _revoke_access(ctx: CommandContext, user: str) -> str:
    known = [one for one in await ctx.engine.pairing.list_people() if one.user == user]
    if not known:
        raise UsageError(f"no person has the id {user!r}: /pair lists them")
    for one in known:
        await ctx.engine.pairing.revoke_access(
            one.account, user, to=AccessStatus.REMOVED, by=ctx.viewer
        )
    return f"Shut out: {user}."
