"""One request for an answer, from the moment on when its message is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from starlette.responses import Response

from clew.api import endings
from clew.api.answers import Answer
from clew.api.completion import Completion, Place
from clew.api.problems import Declined, problem_of
from clew.errors import StoreFull, StoreUnavailable

if TYPE_CHECKING:
    from clew.api.chat_order import ChatOrder
    from clew.api.problems import Problem
    from clew.core.events import InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.engine.orders import IdempotencyKey, RequestService
    from clew.errors import ClewError

log = structlog.get_logger(__name__)

_AWAY = (
    "the message is stored and will be answered; the store is away for now: the conversation will "
    "hold the answer"
)

_FULL = (
    "the message is stored, and there is no space left for its answer: make room on the disk of "
    "the store; then it is answered, and the conversation will hold the answer"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """Who asked for what, and what is owed to them."""

    orders: RequestService
    order: ChatOrder
    accepted: AcceptResult
    key: IdempotencyKey | None

    @property
    def completion(self) -> Completion:
        return Completion(inbox_id=self.accepted.inbox_id, model=self.order.model)

    @property
    def outlives_its_client(self) -> bool:
        """Whether the client can come back for the answer."""
        return self.key is not None or self.order.conversation is not None

    async def answer(self, end: InputCompleted) -> Answer:
        """What is to be sent, kept for those who come again with the key."""
        answer = Answer(
            completion=self.completion,
            place=Place.of(end),
            said=endings.said(end),
            used=await self.orders.get_usage(end.turn),
        )
        if self.key is not None:
            status, kept = answer.to_keep()
            await self.orders.store_answer(self.key, status=status, answer=kept)
        return answer

    async def place(self) -> Place:
        """Where the answer is being made."""
        begun = await self.orders.get_started_turn(self.accepted.inbox_id)
        if begun is None:
            return Place(conversation=self.accepted.conversation_id)
        return Place(
            conversation=begun.turn.conversation_id, session=begun.session, turn=begun.turn.id
        )

    async def gone(self) -> Response:
        """The client went away; nobody reads this response."""
        if not self.outlives_its_client:
            stopped = await self.orders.cancel_request(self.accepted.inbox_id)
            log.info("client_gone", inbox=self.accepted.inbox_id, stopped=stopped)
        return Response(status_code=499)

    @property
    def stopping(self) -> Problem:
        """The server stops before there is an answer."""
        return replace(endings.STOPPING, again=self.key is not None, stored=True)

    def broken(self, error: ClewError) -> Declined:
        """What went wrong while the message, which is stored, was being answered."""
        problem = problem_of(error)
        if isinstance(error, StoreUnavailable):
            # That nothing was stored is said of what was tried last, not of the message.
            problem = replace(problem, message=_AWAY)
        elif isinstance(error, StoreFull):
            problem = replace(problem, message=_FULL)
        return Declined(replace(problem, again=self.key is not None, stored=True))
