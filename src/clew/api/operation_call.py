"""Calls of operations, over any transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.core.inbox import InboxOutcome
from clew.errors import ClewError
from clew.record import Record
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.api.operation_context import OperationContext
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.engine.request_service import IdempotencyKey
    from clew.wire.params import SubmitParams


class AnsweredBefore(ClewError):
    """An earlier request with the same key, whose answer is stored."""

    def __init__(self, answer: str, *, status: int) -> None:
        super().__init__("this request was answered before")
        self.answer, self.status = answer, status


class CallSubject(Record):
    """The subject of a call, which its caller may see."""

    conversation: ConversationId | None = None
    #: The conversation, or the route to one that may not exist yet.
    target: Route | ConversationId | None = None
    #: The route that is to lead to a conversation.
    route: Route | None = None
    #: The input whose answer is the response.
    response: InboxId | None = None


def release_nothing() -> None:
    """Do nothing: the call blocks no other."""


_NO_SUBJECT: Final = CallSubject()


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationCall(ABC):
    """One call of an operation, over any transport."""

    context: OperationContext
    subject: CallSubject = _NO_SUBJECT
    #: Lets later requests of the same client pass: this one only waits from now on.
    release_order: Callable[[], None] = release_nothing

    @property
    def engine(self) -> Engine:
        return self.context.engine

    @property
    def conversation(self) -> ConversationId:
        """Return the conversation that the scope of the operation has found."""
        assert self.subject.conversation is not None
        return self.subject.conversation

    @property
    def target(self) -> Route | ConversationId:
        """Return the target that the scope of the operation has found."""
        assert self.subject.target is not None
        return self.subject.target

    @property
    def route(self) -> Route:
        """Return the route that the scope of the operation has found."""
        assert self.subject.route is not None
        return self.subject.route

    @property
    def response(self) -> InboxId:
        """Return the input of the response that the scope of the operation has found."""
        assert self.subject.response is not None
        return self.subject.response

    @abstractmethod
    def make_key(self, given: SubmitParams) -> IdempotencyKey | None:
        """Return the idempotency key of a message, if it has one."""

    @abstractmethod
    async def wait_for_input(self, filed: AcceptResult) -> InputCompleted:
        """Wait for the result of a queued input."""

    async def wait_for_command(self, filed: AcceptResult) -> str:
        """
        Wait for a queued command and return its note; other requests pass meanwhile.

        :raises CallFailed: if it was not executed
        """
        self.release_order()
        end = await self.wait_for_input(filed)
        if end.outcome is not InboxOutcome.EXECUTED:
            raise CallFailed.from_code(ErrorCode.CONFLICT, end.note or "it was not carried out")
        return end.note or ""
