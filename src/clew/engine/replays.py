"""Replays: a request that was sent, made again, and sent once more to see what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.rebuilding import resend_request
from clew.core.entry import EntryKind
from clew.core.ids import TurnId
from clew.engine.requests import model_of, request_of
from clew.errors import NotFound
from clew.store.transactions import requests, stops
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from clew.agent.messages import ModelResponse
    from clew.core.ids import ConversationId
    from clew.engine.requests import Sent
    from clew.engine.turns import Means

#: What such a request is counted as.
PURPOSE = "replay"


@dataclass(frozen=True, kw_only=True, slots=True)
class Again:
    """Two answers to one request."""

    #: As a person reads it; ``None`` where the request failed.
    stored: str | None
    #: What is answered now.
    now: str
    #: As the provider calls it.
    model: str


class Replays:
    """Looks at requests of turns, and asks them again; nothing in a conversation is changed."""

    def __init__(self, means: Means) -> None:
        self._means = means

    async def find(self, conversation: ConversationId, name: str, step: int) -> Sent:
        """
        The request of a turn's step; the turn by its id, or by its number from 1.

        :raises NotFound: if the conversation has no such turn, or the turn no such step
        :raises Refused: if nothing was sent: the step failed before its request
        :raises SettingsError: if the model that was asked cannot be used here any more
        """
        return await request_of(self._means, await self._turn(conversation, name), step)

    async def _turn(self, conversation: ConversationId, name: str) -> TurnId:
        store = self._means.store
        if name.isascii() and name.isdigit() and 0 < int(name) < 2**31:
            turn = await store.read(requests.find_turn_by_number, conversation, int(name))
            if turn is None:
                raise NotFound("turn", name)
            return turn
        found = await store.read(stops.get_turn, TurnId(name))
        if found.conversation_id != conversation:
            raise NotFound("turn", name)
        return found.id

    async def ask(self, sent: Sent, *, model: str | None = None) -> Again:
        """
        Send a request once more, to the same or another model; tools that it asks for do not run.

        What it costs is recorded with the conversation.

        :raises Refused: if the model does not answer
        :raises SettingsError: if there is no such model, or it cannot be used here
        """
        conversation = sent.entry.conversation_id
        response = await resend_request(
            self._means.loop,
            sent.context,
            await model_of(self._means, conversation, model or sent.model),
            stream=sent.stream,
        )
        await self._means.store.write(record_usage, conversation, self._cost(response))
        answered = sent.entry.kind is EntryKind.MESSAGE
        return Again(
            stored=messages.format_message(messages.load_message(sent.entry.message))
            if answered
            else None,
            now=messages.format_message(response),
            model=response.model_name or "unknown",
        )

    def _cost(self, response: ModelResponse) -> UsageRecord:
        usage = response.usage
        return UsageRecord(
            id=self._means.ids.new_usage_id(),
            used=TokenUsage(
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cache_read_tokens,
                output_tokens=usage.output_tokens,
                cost_micros=dollars_to_micros(usage.cost),
            ),
            model=response.model_name or "unknown",
            purpose=PURPOSE,
        )
