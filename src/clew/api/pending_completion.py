"""Completion request whose message is stored and whose answer is pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from starlette.responses import Response

from clew.api import outcome_mapping
from clew.api.chat_result import ChatResult
from clew.api.openai_format import CompletionEncoder, ConversationRef
from clew.api.problems import ProblemError, problem_from_error
from clew.errors import StoreFull, StoreUnavailable
from clew.record import Record, replace

if TYPE_CHECKING:
    from clew.api.chat_request import ChatCompletionInput
    from clew.api.problems import Problem
    from clew.core.events import InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.engine.request_service import IdempotencyKey, RequestService
    from clew.errors import ClewError

log = structlog.get_logger(__name__)

_STORE_UNAVAILABLE = (
    "the message is stored and will be answered; the store is not available now: the "
    "conversation will hold the answer"
)

_STORE_FULL = (
    "the message is stored, but there is no space left for its answer: make room on the disk of "
    "the store; then it is answered, and the conversation will hold the answer"
)


class PendingCompletion(Record):
    """A stored message with what its client is waiting for."""

    requests: RequestService
    chat_input: ChatCompletionInput
    accepted: AcceptResult
    key: IdempotencyKey | None

    @property
    def encoder(self) -> CompletionEncoder:
        return CompletionEncoder(inbox_id=self.accepted.inbox_id, model=self.chat_input.model)

    @property
    def is_resumable(self) -> bool:
        """Return True if the client can reconnect and still get the answer."""
        return self.key is not None or self.chat_input.conversation is not None

    async def build_result(self, end: InputCompleted) -> ChatResult:
        """Return the result to send, stored for later requests with the same key."""
        answer = ChatResult(
            completion=self.encoder,
            conversation=ConversationRef.from_result(end),
            outcome=outcome_mapping.text_or_problem(end),
            usage=await self.requests.get_usage(end.turn),
        )
        if self.key is not None:
            status, kept = answer.serialize()
            await self.requests.store_answer(self.key, status=status, answer=kept)
        return answer

    async def locate_answer(self) -> ConversationRef:
        """Return the conversation, session and turn in which the answer is produced."""
        begun = await self.requests.get_started_turn(self.accepted.inbox_id)
        if begun is None:
            return ConversationRef(conversation=self.accepted.conversation_id)
        return ConversationRef(
            conversation=begun.turn.conversation_id,
            session=begun.session,
            turn=begun.turn.id,
            trace=begun.turn.trace_id,
        )

    async def on_disconnect(self) -> Response:
        """Stop work that only this client wanted; the response is not read."""
        if not self.is_resumable:
            stopped = await self.requests.cancel_request(self.accepted.inbox_id)
            log.info("client_gone", inbox=self.accepted.inbox_id, stopped=stopped)
        return Response(status_code=499)

    @property
    def stopping_problem(self) -> Problem:
        """Return the problem for a server that stops before there is an answer."""
        return replace(outcome_mapping.STOPPING, again=self.key is not None, stored=True)

    def problem_for(self, error: ClewError) -> ProblemError:
        """Return the problem for an error that occurred after the message was stored."""
        return problem_after_storing(error, again=self.key is not None)


def problem_after_storing(error: ClewError, *, again: bool) -> ProblemError:
    """Return the problem for an error after a message was stored; ``again`` if it has a key."""
    problem = problem_from_error(error)
    if isinstance(error, StoreUnavailable):
        # "Nothing was stored" is true of the last attempt, but not of the message.
        problem = replace(problem, message=_STORE_UNAVAILABLE)
    elif isinstance(error, StoreFull):
        problem = replace(problem, message=_STORE_FULL)
    return ProblemError(replace(problem, again=again, stored=True))
