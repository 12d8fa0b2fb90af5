"""Replays: a recorded request is rebuilt and sent again for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.request_replay import resend_request
from clew.core.entry import EntryKind
from clew.core.ids import TurnId
from clew.engine.recorded_requests import find_request, resolve_model
from clew.errors import NotFound
from clew.record import Record
from clew.store.transactions import model_requests, turn_queries
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from clew.agent.messages import ModelResponse
    from clew.core.ids import ConversationId
    from clew.engine.recorded_requests import RecordedRequest
    from clew.engine.services import EngineServices

#: The purpose under which its usage is recorded.
PURPOSE = "replay"


class ReplayResult(Record):
    """Two answers to one request."""

    #: As people read it; ``None`` if the request failed.
    stored: str | None
    #: The new answer.
    now: str
    #: The provider's name of the model.
    model: str


class ReplayService:
    """The replay of recorded requests; it changes nothing in a conversation."""

    def __init__(self, means: EngineServices) -> None:
        self._services = means

    async def find_request(
        self, conversation: ConversationId, name: str, step: int
    ) -> RecordedRequest:
        """
        Return the request of a turn's step; the turn by its id, or by its number from 1.

        :raises NotFound: if the conversation has no such turn, or the turn no such step
        :raises OperationRefused: if nothing was sent: the step failed before its request
        :raises SettingsError: if its model cannot be used here any more
        """
        return await find_request(
            self._services, await self._resolve_turn(conversation, name), step
        )

    async def _resolve_turn(self, conversation: ConversationId, name: str) -> TurnId:
        store = self._services.store
        if name.isascii() and name.isdigit() and 0 < int(name) < 2**31:
            turn = await store.read(model_requests.find_turn_by_number, conversation, int(name))
            if turn is None:
                raise NotFound("turn", name)
            return turn
        found = await store.read(turn_queries.get_turn, TurnId(name))
        if found.conversation_id != conversation:
            raise NotFound("turn", name)
        return found.id

    async def resend_request(
        self, sent: RecordedRequest, *, model: str | None = None
    ) -> ReplayResult:
        """
        Send a request again, to the same or another model; its tool calls do not run.

        Its cost is recorded with the conversation.

        :raises OperationRefused: if the model does not answer
        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        conversation = sent.entry.conversation_id
        response = await resend_request(
            self._services.loop,
            sent.context,
            await resolve_model(self._services, conversation, model or sent.model),
            stream=sent.stream,
        )
        await self._services.store.write(
            record_usage, conversation, self._build_usage_record(response)
        )
        answered = sent.entry.kind is EntryKind.MESSAGE
        return ReplayResult(
            stored=messages.format_message(messages.load_message(sent.entry.message))
            if answered
            else None,
            now=messages.format_message(response),
            model=response.model_name or "unknown",
        )

    def _build_usage_record(self, response: ModelResponse) -> UsageRecord:
        usage = response.usage
        return UsageRecord(
            id=self._services.ids.new_usage_id(),
            used=TokenUsage(
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cache_read_tokens,
                output_tokens=usage.output_tokens,
                cost_micros=dollars_to_micros(usage.cost),
            ),
            model=response.model_name or "unknown",
            purpose=PURPOSE,
        )
