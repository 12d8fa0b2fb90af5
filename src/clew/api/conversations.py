"""``/api/conversations``: endpoints that read and change conversations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew.api import outcome_mapping
from clew.api.idempotency import idempotency_key
from clew.api.operation_endpoint import name_in_path
from clew.api.problems import ProblemError, invalid_request
from clew.api.rpc.context import conversation_model
from clew.api.sse import InterruptibleReader, Interruption
from clew.core import session as reasons
from clew.core.double_text import parse_rule
from clew.core.events import InputCompleted
from clew.core.inbox import InboxOutcome
from clew.core.text import sanitize_text
from clew.engine.queued_commands import parse_compaction_note
from clew.errors import StoreFull
from clew.wire import serializers

if TYPE_CHECKING:
    import asyncio

    from starlette.requests import Request
    from starlette.responses import Response

    from clew.api.schemas import (
        CompactRequest,
        EmptyInput,
        MessageRequest,
        RenameRequest,
        RewindRequest,
    )
    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult
    from clew.engine.engine import Engine
    from clew.engine.request_service import FetchedFile
    from clew.wire.params import Attachment


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationEndpoints:
    """The conversation endpoints."""

    engine: Engine
    #: The rule for messages that arrive during a turn, unless the client chooses one.
    double_text: str
    shutdown: asyncio.Event

    async def show_conversation(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        return await self._conversation_response(await self.resolve_path(request))

    async def _conversation_response(self, conversation: ConversationId) -> Response:
        return JSONResponse(
            conversation_model(await self.engine.get_view(conversation)).model_dump(mode="json")
        )

    async def post_message(
        self, request: Request, query: EmptyInput, body: MessageRequest
    ) -> Response:
        key = idempotency_key(request)
        target = self.engine.parse_target(name_in_path(request))
        message = self.engine.new_input(
            body.text,
            double_text=parse_rule(body.double_text or self.double_text, people=False),
            key=key,
            files=[
                self._prepare_file(one, place) for place, one in enumerate(body.attachments or ())
            ],
        )
        accepted = await self.engine.submit(message, target=target)
        if accepted.answer is not None:
            return _json_response(accepted.status or 202, accepted.answer)
        status, answer = _build_accepted(accepted)
        if key is not None:
            await self.engine.requests.store_answer(key, status=status, answer=answer)
        return _json_response(status, answer)

    def _prepare_file(self, given: Attachment, place: int) -> FetchedFile:
        try:
            content = given.decode_content()
        except ValueError as error:
            raise invalid_request(str(error), param=f"attachments[{place}].data") from None
        return self.engine.requests.prepare_file(
            name=given.name, media_type=given.media_type, content=content
        )

    async def rename_conversation(
        self, request: Request, query: EmptyInput, body: RenameRequest
    ) -> Response:
        conversation = await self.resolve_path(request)
        await self.engine.rename_conversation(conversation, body.title)
        return await self._conversation_response(conversation)

    async def rewind_conversation(
        self, request: Request, query: EmptyInput, body: RewindRequest
    ) -> Response:
        conversation = await self.resolve_path(request)
        filed = await self.engine.sessions.queue_rewind(conversation, to=body.to)
        await self._wait_for_command(request, filed)
        return await self._conversation_response(conversation)

    async def restore_session(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        conversation = await self.resolve_path(request)
        await self._wait_for_command(
            request, await self.engine.sessions.queue_restore(conversation)
        )
        return await self._conversation_response(conversation)

    async def compact_session(
        self, request: Request, query: EmptyInput, body: CompactRequest
    ) -> Response:
        conversation = await self.resolve_path(request)
        if body.dry_run:
            preview = await self.engine.sessions.preview_compaction(conversation)
            return JSONResponse(
                serializers.serialize_compaction(preview, session=preview.session, moved=False)
            )
        focus = None if body.focus is None else sanitize_text(body.focus)
        filed = await self.engine.sessions.queue_compaction(conversation, focus=focus)
        done = parse_compaction_note(await self._wait_for_command(request, filed))
        if done.busy:
            raise ProblemError(outcome_mapping.conflict_problem(done.note))
        return JSONResponse(
            serializers.serialize_compaction(done, session=done.session_id, moved=done.moved)
        )

    async def close_conversation(
        self, request: Request, query: EmptyInput, body: EmptyInput
    ) -> Response:
        conversation = await self.resolve_path(request)
        filed = await self.engine.queue_close(conversation, reason=reasons.USER_EXIT)
        await self._wait_for_command(request, filed)
        return await self._conversation_response(conversation)

    async def _wait_for_command(self, request: Request, filed: AcceptResult) -> str:
        """
        Wait for a queued command and return its note.

        :raises ProblemError: if it failed, or is left for the next start
        """
        async with InterruptibleReader(
            self.engine.stream_input(filed), request.receive, self.shutdown
        ) as ear:
            try:
                while not isinstance(
                    heard := await ear.next_event(), (InputCompleted, Interruption)
                ):
                    pass
            except StoreFull as error:
                raise ProblemError(outcome_mapping.STORE_FULL_QUEUED) from error
        if isinstance(heard, Interruption):
            raise ProblemError(outcome_mapping.STOPPING_QUEUED)
        if heard.outcome is not InboxOutcome.EXECUTED:
            raise ProblemError(
                outcome_mapping.conflict_problem(heard.note or "it was not carried out")
            )
        return heard.note or ""

    async def resolve_path(self, request: Request) -> ConversationId:
        """
        Return the conversation that the path names.

        :raises NotFound: if there is none
        """
        return await self.engine.resolve_name(name_in_path(request))


def _build_accepted(accepted: AcceptResult) -> tuple[int, str]:
    """Return status and body for a message: 202, or 409 if it was rejected."""
    if accepted.outcome is InboxOutcome.REJECTED:
        return 409, json.dumps(outcome_mapping.rejected_problem().json_body)
    body = {
        "inbox_id": accepted.inbox_id,
        "conversation": accepted.conversation_id,
        "position": accepted.position,
    }
    return 202, json.dumps(body)


def _json_response(status: int, answer: str) -> Response:
    headers = {"x-should-retry": "false"} if status >= 400 else None
    return JSONResponse(json.loads(answer), status, headers=headers)
