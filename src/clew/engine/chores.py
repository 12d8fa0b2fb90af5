"""Chat commands that change a conversation, or where a route leads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core import scope as scopes
from clew.engine.checks import checked_title
from clew.engine.commands import compacted
from clew.engine.desk import WAITS, Reply, number
from clew.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId
    from clew.engine.desk import Desk

#: Conversations that one list shows.
LISTED = 10


async def new(desk: Desk, argument: str) -> Reply:
    title = checked_title(argument) if argument else None
    conversation = await desk.engine.start_afresh(desk.own_route)
    text = await _begun(desk, conversation, title)
    return Reply(
        text=f"{text}\n{await _who_answers(desk, conversation)}", conversation=conversation
    )


async def _begun(desk: Desk, conversation: ConversationId, title: str | None) -> str:
    if title is None:
        return "New session: what was said before is kept."
    try:
        await desk.engine.titles.ask(conversation, title)
    except UsageError as error:
        return f"New session, without the title: {error}."
    return f"New session: {title}"


async def _who_answers(desk: Desk, conversation: ConversationId) -> str:
    """Return which model answers in a conversation, and how large its context is."""
    name = await desk.engine.models.name(conversation)
    window = (await desk.engine.context_size(conversation)).window
    size = "of unknown size" if window is None else f"of {window:,} tokens"
    return f"Model: {name}, with a context {size}."


async def compress(desk: Desk, argument: str) -> Reply:
    filed = await desk.engine.lifecycle.compress(desk.conversation, focus=argument or None)
    note = await desk.done(filed)
    if note is None:
        return desk.reply(WAITS)
    return desk.reply(f"{compacted(note).told}.")


async def undo(desk: Desk, argument: str) -> Reply:
    back = number(argument, default=1)
    note = await desk.done(await desk.engine.lifecycle.undo(desk.conversation, back=back))
    if note is None:
        return desk.reply(WAITS)
    return desk.reply(f"Undone, back to before: {_quoted(json.loads(note)['text'])}")


async def retry(desk: Desk, argument: str) -> Reply:
    filed, again = await desk.engine.lifecycle.retry(desk.conversation, route=desk.route)
    note = await desk.done(filed)
    if note is None:
        return desk.reply(WAITS)
    text = f"Asking again: {_quoted(json.loads(note)['text'])}"
    return Reply(text=text, conversation=desk.conversation, accepted=again)


async def branch(desk: Desk, argument: str) -> Reply:
    new_one = await desk.engine.lifecycle.branch(
        desk.conversation, title=argument or None, route=desk.route, viewer=desk.viewer
    )
    where = "You are in the copy now" if desk.route is not None else f"The copy is {new_one}"
    return Reply(text=f"{where}; the original is {desk.conversation}.", conversation=new_one)


async def rewind(desk: Desk, argument: str) -> Reply:
    if not argument:
        raise UsageError("say to which entry: /rewind 12 goes back to right after entry 12")
    to = number(argument)
    note = await desk.done(await desk.engine.lifecycle.rewind(desk.conversation, to=to))
    return desk.reply(WAITS if note is None else f"Back to right after entry {to}.")


async def title(desk: Desk, argument: str) -> Reply:
    if not argument:
        view = await desk.engine.show(desk.conversation, viewer=desk.viewer)
        return desk.reply(view.conversation.title or "This conversation has no title yet.")
    wanted = checked_title(argument)
    target = desk.found or desk.own_route
    found = await desk.engine.titles.ask(target, wanted)
    return Reply(text=f"This conversation is called: {wanted}", conversation=found)


async def resume(desk: Desk, argument: str) -> Reply:
    if not argument:
        raise UsageError("say which one: /resume 2, /resume TITLE; /sessions lists them")
    conversation = await _meant(desk, argument)
    await desk.engine.lifecycle.resume(desk.own_route, conversation, viewer=desk.viewer)
    view = await desk.engine.show(conversation, viewer=desk.viewer)
    name = view.conversation.title or conversation
    return Reply(text=f"Here goes on: {name}", conversation=conversation)


async def _meant(desk: Desk, argument: str) -> ConversationId:
    """The conversation of a number in the list, a title, a part of one title, or an id."""
    if argument.isascii() and argument.isdigit():
        listed = (await desk.engine.list(viewer=desk.viewer, limit=LISTED)).items
        if not 1 <= int(argument) <= len(listed):
            raise UsageError(f"there is no number {argument}: /sessions shows {len(listed)}")
        return listed[int(argument) - 1].id
    titled = (await desk.engine.list(viewer=desk.viewer, title=argument, limit=50)).items
    if found := _titled(titled, argument):
        return found
    try:
        return await desk.engine.resolve(argument, viewer=desk.viewer)
    except NotFound:
        raise UsageError(
            f"there is no conversation {argument!r} here: /sessions lists them"
        ) from None


def _titled(found: Sequence[Conversation], argument: str) -> ConversationId | None:
    exact = [one for one in found if (one.title or "").lower() == argument.lower()]
    fitting = exact or list(found)
    if len(fitting) > 1:
        titles = ", ".join(_quoted(one.title or one.id) for one in fitting[:5])
        raise UsageError(f"{len(fitting)} titles fit {argument!r}: {titles}; say more of it")
    return fitting[0].id if fitting else None


async def model(desk: Desk, argument: str) -> Reply:
    models = desk.engine.models
    if not argument:
        chosen = await models.name(desk.conversation)
        return desk.reply(f"The model is {chosen}. To choose from: {', '.join(models.offered)}.")
    # Anything else would be a stranger's choice of what the owner pays for.
    if desk.viewer != scopes.LOCAL and argument not in models.offered:
        raise UsageError(
            f"{argument!r} is not offered here: choose from {', '.join(models.offered)}"
        )
    await models.choose(desk.conversation, argument)
    return desk.reply(f"From the next message on, {argument} answers here.")


def _quoted(text: str) -> str:
    one_line = " ".join(text.split())
    return f"“{one_line if len(one_line) <= 80 else one_line[:79] + '…'}”"
