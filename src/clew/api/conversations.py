"""``/api/conversations``: looking at conversations, and what is done with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.responses import JSONResponse

from clew.api import endings
from clew.api.keys import key_of
from clew.api.problems import Declined, invalid
from clew.api.sse import Ear, Heard
from clew.core import session as reasons
from clew.core.double_text import resolve_rule
from clew.core.events import InputCompleted
from clew.core.ids import ConversationId
from clew.core.inbox import InboxOutcome
from clew.core.text import sanitize_text
from clew.engine.commands import parse_compaction_note
from clew.errors import NotFound, StoreFull
from clew.wire import shapes

if TYPE_CHECKING:
    import asyncio

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.schemas import (
        BranchRequest,
        CompactRequest,
        EntriesQuery,
        ListQuery,
        MessageRequest,
        Nothing,
        RenameRequest,
        RewindRequest,
        SearchQuery,
    )
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.engine.orders import FetchedFile
    from clew.engine.records import ConversationView
    from clew.wire.params import Attachment


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversations:
    """The endpoints."""

    engine: Engine
    #: The rule for a message that comes in mid turn, where the client chooses none.
    double_text: str
    leaving: asyncio.Event

    async def list(self, request: Request, query: ListQuery, body: Nothing) -> Response:
        page = await self.engine.list_views(
            title=sanitize_text(query.query),
            cursor=query.cursor or None,
            limit=query.limit,
            adhoc=query.adhoc == "true",
        )
        return JSONResponse(shapes.serialize_page(list(map(shape_of, page.items)), page.next))

    async def search(self, request: Request, query: SearchQuery, body: Nothing) -> Response:
        found = await self.engine.search_messages(
            sanitize_text(query.query), cursor=query.cursor or None, limit=query.limit
        )
        return JSONResponse(
            shapes.serialize_page([shapes.serialize_hit(hit) for hit in found.items], found.next)
        )

    async def show(self, request: Request, query: Nothing, body: Nothing) -> Response:
        return await self._shown(await self.named(request))

    async def _shown(self, conversation: ConversationId) -> Response:
        return JSONResponse(shape_of(await self.engine.get_view(conversation)))

    async def entries(self, request: Request, query: EntriesQuery, body: Nothing) -> Response:
        conversation = await self.named(request)
        found = await self.engine.read_entries(
            conversation, after=query.after, limit=query.limit + 1
        )
        items = found[: query.limit]
        following = str(items[-1].seq) if len(found) > len(items) else None
        return JSONResponse(
            shapes.serialize_page([shapes.serialize_entry(entry) for entry in items], following)
        )

    async def say(self, request: Request, query: Nothing, body: MessageRequest) -> Response:
        key = key_of(request)
        placed = await self.engine.requests.submit(
            body.text,
            target=self.engine.parse_target(name_in_path(request)),
            double_text=resolve_rule(body.double_text or self.double_text, people=False),
            key=key,
            files=[self._file(one, place) for place, one in enumerate(body.attachments or ())],
        )
        if placed.answer is not None:
            return _stored(placed.status or 202, placed.answer)
        status, answer = _accepted(placed.accepted)
        if key is not None:
            await self.engine.requests.store_answer(key, status=status, answer=answer)
        return _stored(status, answer)

    def _file(self, given: Attachment, place: int) -> FetchedFile:
        try:
            content = given.decode_content()
        except ValueError as error:
            raise invalid(str(error), param=f"attachments[{place}].data") from None
        return self.engine.requests.prepare_file(
            name=given.name, media_type=given.media_type, content=content
        )

    async def rename(self, request: Request, query: Nothing, body: RenameRequest) -> Response:
        conversation = await self.named(request)
        await self.engine.rename_conversation(conversation, body.title)
        return await self._shown(conversation)

    async def branch(self, request: Request, query: Nothing, body: BranchRequest) -> Response:
        new = await self.engine.sessions.branch_conversation(
            await self.named(request),
            at=body.at,
            title=body.title,
            route=None if body.name is None else self._route(body.name),
        )
        return await self._shown(new)

    def _route(self, name: str) -> Route:
        route = self.engine.parse_target(sanitize_text(name))
        if isinstance(route, str):
            raise invalid(f"{name!r} is an id: give a name that is to lead there", param="name")
        return route

    async def rewind(self, request: Request, query: Nothing, body: RewindRequest) -> Response:
        conversation = await self.named(request)
        filed = await self.engine.sessions.queue_rewind(conversation, to=body.to)
        await self._carried_out(request, filed)
        return await self._shown(conversation)

    async def restore(self, request: Request, query: Nothing, body: Nothing) -> Response:
        conversation = await self.named(request)
        await self._carried_out(request, await self.engine.sessions.queue_restore(conversation))
        return await self._shown(conversation)

    async def compact(self, request: Request, query: Nothing, body: CompactRequest) -> Response:
        conversation = await self.named(request)
        if body.dry_run:
            preview = await self.engine.sessions.preview_compaction(conversation)
            return JSONResponse(
                shapes.serialize_compaction(preview, session=preview.session, moved=False)
            )
        focus = None if body.focus is None else sanitize_text(body.focus)
        filed = await self.engine.sessions.queue_compaction(conversation, focus=focus)
        done = parse_compaction_note(await self._carried_out(request, filed))
        if done.busy:
            raise Declined(endings.conflict(done.note))
        return JSONResponse(
            shapes.serialize_compaction(done, session=done.session_id, moved=done.moved)
        )

    async def close(self, request: Request, query: Nothing, body: Nothing) -> Response:
        conversation = await self.named(request)
        filed = await self.engine.queue_close(conversation, reason=reasons.USER_EXIT)
        await self._carried_out(request, filed)
        return await self._shown(conversation)

    async def _carried_out(self, request: Request, filed: AcceptResult) -> str:
        """
        Wait for what was filed and give its note.

        :raises Declined: if it could not be carried out, or is left for the next start
        """
        async with Ear(self.engine.stream_input(filed), request.receive, self.leaving) as ear:
            try:
                while not isinstance(heard := await ear.hear(), (InputCompleted, Heard)):
                    pass
            except StoreFull as error:
                raise Declined(endings.FILED_NO_ROOM) from error
        if isinstance(heard, Heard):
            raise Declined(endings.FILED)
        if heard.outcome is not InboxOutcome.EXECUTED:
            raise Declined(endings.conflict(heard.note or "it was not carried out"))
        return heard.note or ""

    async def delete(self, request: Request, query: Nothing, body: Nothing) -> Response:
        conversation = await self.named(request)
        until = await self.engine.delete_conversation(conversation)
        undo_until = until and shapes.format_timestamp(until)
        return JSONResponse({"deleted": conversation, "undo_until": undo_until})

    async def undelete(self, request: Request, query: Nothing, body: Nothing) -> Response:
        conversation = ConversationId(name_in_path(request))
        await self.engine.undelete_conversation(conversation)
        return await self._shown(conversation)

    async def named(self, request: Request) -> ConversationId:
        """:raises NotFound: if the name in the path means nothing"""
        return await self.engine.resolve_name(name_in_path(request))


def shape_of(view: ConversationView) -> dict[str, object]:
    return shapes.serialize_conversation(
        view.conversation, routes=view.routes, sessions=view.sessions, counts=view.counts
    )


def _accepted(accepted: AcceptResult) -> tuple[int, str]:
    """What is answered to a message: 202, or that it was refused."""
    if accepted.outcome is InboxOutcome.REJECTED:
        return 409, json.dumps(endings.rejected().body)
    body = {
        "inbox_id": accepted.inbox_id,
        "conversation": accepted.conversation_id,
        "position": accepted.position,
    }
    return 202, json.dumps(body)


def _stored(status: int, answer: str) -> Response:
    headers = {"x-should-retry": "false"} if status >= 400 else None
    return JSONResponse(json.loads(answer), status, headers=headers)


def name_in_path(request: Request) -> str:
    """
    The name of a conversation in a path, which may hold escaped slashes.

    :raises NotFound: if it cannot be one
    """
    escaped: str = request.path_params["id"]
    try:
        name = unquote(escaped, errors="strict")
    except UnicodeDecodeError:
        raise NotFound("conversation", escaped) from None
    if name != sanitize_text(name):
        raise NotFound("conversation", sanitize_text(name))
    return name
