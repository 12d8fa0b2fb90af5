"""Chat commands of the control lane: answered at once, also while a turn runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.commands.arguments import parse_number
from clew.commands.conversation import LIST_LIMIT
from clew.core import scope as scopes
from clew.core.access import AccessStatus
from clew.core.approval import fits_in_chat
from clew.core.turn import TurnState
from clew.errors import InvalidTransition, UsageError
from clew.wording import NOT_ALLOWED_NOTICE

log = structlog.get_logger(__name__)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.commands.registry import ChatCommandReply, CommandContext
    from clew.core.access import Person
    from clew.core.approval import NumberedApproval
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
    head = view.sessions[-1]
    rows = [
        (
            "conversation",
            f"{view.conversation.title or '(no title)'}, {ctx.required_conversation}",
        ),
        ("session", head.id if head.is_open else f"{head.id}, ended ({head.end_reason})"),
        ("entries", str(view.conversation.last_seq)),
        (
            "model",
            await ctx.engine.model_overrides.get_model_name(ctx.required_conversation),
        ),
        ("doing", _ACTIVITIES[None if turn is None else turn.state]),
        ("waiting", str(len(waiting))),
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


async def approve_calls(ctx: CommandContext, argument: str) -> ChatCommandReply:
    return await _answer_questions(ctx, argument, yes=True)


async def deny_calls(ctx: CommandContext, argument: str) -> ChatCommandReply:
    return await _answer_questions(ctx, argument, yes=False)


async def _answer_questions(ctx: CommandContext, argument: str, *, yes: bool) -> ChatCommandReply:
    questions, others = ((), 0) if ctx.conversation_id is None else await _list_questions(ctx)
    if others and ctx.who is not None:
        log.warning("approval_answer_refused", user=ctx.who.user, reason="not allowed")
    if not questions:
        return ctx.reply(
            NOT_ALLOWED_NOTICE if others else "Nothing is waiting for your approval here."
        )
    chosen = _select_questions(questions, argument, word="approve" if yes else "deny")
    for each in chosen:
        try:
            await ctx.engine.answer_approval(each.approval.id, yes=yes, by=_identify_writer(ctx))
        except InvalidTransition:
            raise UsageError(
                f"too late: question {each.number} was answered, or its time is over"
            ) from None
    word = "Allowed" if yes else "Refused"
    named = ", ".join(each.approval.tool for each in chosen)
    left = len(questions) - len(chosen)
    return ctx.reply(f"{word}: {named}." + (f" {left} more wait." if left else ""))


def _identify_writer(ctx: CommandContext) -> str:
    who = ctx.who
    return ctx.viewer if who is None else f"{who.account.channel}:{who.user}"


async def _list_questions(ctx: CommandContext) -> tuple[Sequence[NumberedApproval], int]:
    """Return the open questions that the writer may answer, and the number of others here."""
    if ctx.who is not None and ctx.route is not None:
        return await ctx.engine.channel_inbox.list_questions(
            ctx.required_conversation, who=ctx.who, route=ctx.route
        )
    asked = await ctx.engine.list_questions(ctx.required_conversation)
    if ctx.viewer == scopes.LOCAL:
        return asked, 0
    here = None if ctx.route is None else ctx.route.key
    return [
        one for one in asked if one.approval.route in (None, here) and fits_in_chat(one.approval)
    ], 0


def _select_questions(
    questions: Sequence[NumberedApproval], argument: str, *, word: str
) -> Sequence[NumberedApproval]:
    if argument == "all":
        return questions
    if argument.startswith("apr_"):
        return [_find_question(questions, argument)]
    if not argument and len(questions) == 1:
        return questions
    listed = ", ".join(f"{one.number} ({one.approval.tool})" for one in questions)
    if not argument:
        raise UsageError(
            f"{len(questions)} questions wait, {listed}: /{word} {questions[0].number} answers "
            f"one, /{word} all answers them all"
        )
    place = parse_number(argument)
    chosen = [one for one in questions if one.number == place]
    if not chosen:
        raise UsageError(f"there is no question {place} that waits; these do: {listed}")
    return chosen


def _find_question(questions: Sequence[NumberedApproval], id_: str) -> NumberedApproval:
    for one in questions:
        if one.approval.id == id_:
            return one
    raise UsageError(f"no question {id_} waits here: it was answered, or has expired")


async def manage_pairing(ctx: CommandContext, argument: str) -> ChatCommandReply:
    word, _, user = argument.partition(" ")
    if not argument:
        return ctx.reply(
            "\n".join(map(_format_person, await ctx.engine.pairing.list_people())) or "Nobody yet."
        )
    if word == "remove" and user.strip():
        return ctx.reply(await _revoke_access(ctx, user.strip()))
    person = await ctx.engine.pairing.approve_code(argument, by=ctx.viewer)
    return ctx.reply(f"Let in: {person.name or 'somebody'}, id {person.user}.")


def _format_person(person: Person) -> str:
    name = person.name or "(no name)"
    where = f"{person.account.channel} {person.user}"
    return f"{person.standing.value}: {name}, {where}, {person.changed_at:%Y-%m-%d %H:%M}"


async def _revoke_access(ctx: CommandContext, user: str) -> str:
    known = [one for one in await ctx.engine.pairing.list_people() if one.user == user]
    if not known:
        raise UsageError(f"nobody has the id {user!r}: /pair lists them")
    for one in known:
        await ctx.engine.pairing.revoke_access(
            one.account, user, to=AccessStatus.REMOVED, by=ctx.viewer
        )
    return f"Shut out: {user}."
