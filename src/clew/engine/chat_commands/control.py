"""Chat commands of the control lane: answered at once, also while a turn runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import scope as scopes
from clew.core.access import AccessStatus
from clew.core.approval import fits_in_chat
from clew.core.turn import TurnState
from clew.engine.chat_commands.context import ChatCommandReply, parse_number
from clew.engine.chat_commands.conversation import LIST_LIMIT
from clew.errors import InvalidTransition, UsageError
from clew.store.transactions.channel_inbox import NOT_ALLOWED_NOTICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.access import Person
    from clew.core.approval import NumberedApproval
    from clew.core.conversation import Conversation
    from clew.engine.chat_commands.context import CommandContext


async def stop_turn(desk: CommandContext, argument: str) -> ChatCommandReply:
    stopped = desk.conversation_id is not None and await desk.engine.request_stop(
        desk.conversation_id
    )
    return desk.reply("Stopped." if stopped else "Nothing is running here.")


async def list_sessions(desk: CommandContext, argument: str) -> ChatCommandReply:
    page = await desk.engine.list_conversations(
        viewer=desk.viewer, title=argument, limit=LIST_LIMIT
    )
    if not page.items:
        return desk.reply("There are no conversations" + (" like that." if argument else " yet."))
    lines = [
        _format_conversation(n, one, here=one.id == desk.conversation_id)
        for n, one in enumerate(page.items, 1)
    ]
    if argument:
        # Numbers refer to the whole list.
        lines = [
            _format_conversation(None, one, here=one.id == desk.conversation_id)
            for one in page.items
        ]
    if page.next is not None:
        lines.append("There are more: /sessions WORDS finds them by their titles.")
    return desk.reply("\n".join(lines))


def _format_conversation(place: int | None, one: Conversation, *, here: bool) -> str:
    name = one.title or "(no title)"
    mark = " (here)" if here else ""
    start = "" if place is None else f"{place}. "
    return f"{start}{name}{mark}, {one.last_seq} entries, {one.updated_at:%Y-%m-%d %H:%M}, {one.id}"


async def show_queue(desk: CommandContext, argument: str) -> ChatCommandReply:
    if desk.conversation_id is None or not (
        waiting := await desk.engine.list_queue(desk.conversation_id)
    ):
        return desk.reply("Nothing waits.")
    lines = [f"{n}. {' '.join(item.text.split())[:80]}" for n, item in enumerate(waiting, 1)]
    return desk.reply("\n".join(lines))


_ACTIVITIES = {
    None: "nothing",
    TurnState.RUNNING: "answering; /stop ends it",
    TurnState.WAITING: "waiting for /approve or /deny",
}


async def show_status(desk: CommandContext, argument: str) -> ChatCommandReply:
    view = await desk.engine.get_view(desk.required_conversation, viewer=desk.viewer)
    turn = await desk.engine.get_unfinished_turn(desk.required_conversation)
    waiting = await desk.engine.list_queue(desk.required_conversation)
    head = view.sessions[-1]
    rows = [
        (
            "conversation",
            f"{view.conversation.title or '(no title)'}, {desk.required_conversation}",
        ),
        ("session", head.id if head.is_open else f"{head.id}, ended ({head.end_reason})"),
        ("entries", str(view.conversation.last_seq)),
        ("model", await desk.engine.model_overrides.get_model_name(desk.required_conversation)),
        ("doing", _ACTIVITIES[None if turn is None else turn.state]),
        ("waiting", str(len(waiting))),
    ]
    return desk.reply("\n".join(f"{name}: {value}" for name, value in rows))


async def show_usage(desk: CommandContext, argument: str) -> ChatCommandReply:
    used = (await desk.engine.get_view(desk.required_conversation, viewer=desk.viewer)).usage
    text = (
        f"Tokens in: {used.input_tokens:,} ({used.cached_tokens:,} of them cached), "
        f"out: {used.output_tokens:,}."
    )
    if used.cost_micros is not None:
        text += f" Cost: ${used.cost_micros / 1_000_000:.4f}."
    return desk.reply(text)


async def approve_calls(desk: CommandContext, argument: str) -> ChatCommandReply:
    return await _answer_questions(desk, argument, yes=True)


async def deny_calls(desk: CommandContext, argument: str) -> ChatCommandReply:
    return await _answer_questions(desk, argument, yes=False)


async def _answer_questions(desk: CommandContext, argument: str, *, yes: bool) -> ChatCommandReply:
    questions, others = ((), 0) if desk.conversation_id is None else await _list_questions(desk)
    if not questions:
        return desk.reply(NOT_ALLOWED_NOTICE if others else "Nothing waits for your word here.")
    chosen = _select_questions(questions, argument, word="approve" if yes else "deny")
    for each in chosen:
        try:
            await desk.engine.answer_approval(each.approval.id, yes=yes, by=_identify_writer(desk))
        except InvalidTransition:
            raise UsageError(
                f"too late: question {each.number} was answered, or its time is over"
            ) from None
    word = "Allowed" if yes else "Refused"
    named = ", ".join(each.approval.tool for each in chosen)
    left = len(questions) - len(chosen)
    return desk.reply(f"{word}: {named}." + (f" {left} more wait." if left else ""))


def _identify_writer(desk: CommandContext) -> str:
    who = desk.who
    return desk.viewer if who is None else f"{who.account.channel}:{who.user}"


async def _list_questions(desk: CommandContext) -> tuple[Sequence[NumberedApproval], int]:
    """Return the open questions that the writer may answer, and the number of others here."""
    if desk.who is not None and desk.route is not None:
        return await desk.engine.channel_inbox.list_questions(
            desk.required_conversation, who=desk.who, route=desk.route
        )
    asked = await desk.engine.list_questions(desk.required_conversation)
    if desk.viewer == scopes.LOCAL:
        return asked, 0
    here = None if desk.route is None else desk.route.key
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


async def manage_pairing(desk: CommandContext, argument: str) -> ChatCommandReply:
    word, _, user = argument.partition(" ")
    if not argument:
        return desk.reply(
            "\n".join(map(_format_person, await desk.engine.pairing.list_people())) or "Nobody yet."
        )
    if word == "remove" and user.strip():
        return desk.reply(await _revoke_access(desk, user.strip()))
    person = await desk.engine.pairing.approve_code(argument, by=desk.viewer)
    return desk.reply(f"Let in: {person.name or 'somebody'}, id {person.user}.")


def _format_person(person: Person) -> str:
    name = person.name or "(no name)"
    where = f"{person.account.channel} {person.user}"
    return f"{person.standing.value}: {name}, {where}, {person.changed_at:%Y-%m-%d %H:%M}"


async def _revoke_access(desk: CommandContext, user: str) -> str:
    known = [one for one in await desk.engine.pairing.list_people() if one.user == user]
    if not known:
        raise UsageError(f"nobody has the id {user!r}: /pair lists them")
    for one in known:
        await desk.engine.pairing.revoke_access(
            one.account, user, to=AccessStatus.REMOVED, by=desk.viewer
        )
    return f"Shut out: {user}."
