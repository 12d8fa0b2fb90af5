"""What plugins are told of one turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from clew.agent import current, messages
from clew.core.turn import TurnOutcome
from clew.store.transactions import stops

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from clew.agent.messages import ModelResponse
    from clew.agent.models import Model
    from clew.agent.ports import ToolResult
    from clew.core.ids import SessionId
    from clew.core.turn import Turn
    from clew.engine.facts import Facts
    from clew.store.contract import Store

START = "on_session_start"
END = "on_session_end"
ANSWERED = "post_llm_call"
CALLED = "post_tool_call"


class TurnFacts:
    """Says where a turn is, and puts its facts in the line once what they tell is stored."""

    def __init__(self, store: Store, facts: Facts, turn: Turn, *, platform: str) -> None:
        self._store, self._facts = store, facts
        self._turn, self._platform = turn, platform
        self._model = ""
        self._answer: Mapping[str, object] | None = None
        #: Calls that end with the turn: id, tool, arguments and result.
        self._closed: list[tuple[str, str, Mapping[str, object], ToolResult]] = []

    async def begun(self, session: SessionId, model: Model) -> None:
        """The turn begins or goes on in a session; tell that it starts, if this is its first."""
        self._enter(session)
        self._model = model.model_name
        if not self._facts.plugins.implements_hook(START) or self._turn.steps:
            return
        if await self._store.read(stops.is_first_turn, self._turn, session):
            self._tell(START, {"session_id": session, "model": self._model})

    def moved(self, session: SessionId) -> None:
        """The turn goes on in a session that a compaction has opened: tell that it starts."""
        self._enter(session)
        self._tell(START, {"session_id": session, "model": self._model})

    def _enter(self, session: SessionId) -> None:
        conversation, turn = self._turn.conversation_id, self._turn.id
        current.set_turn_context(
            current.TurnContext(conversation=conversation, session=session, turn=turn)
        )

    def closing(
        self,
        response: ModelResponse,
        known: Mapping[str, ToolResult],
        *,
        otherwise: ToolResult,
        told: Collection[str],
    ) -> None:
        """Take down the calls of a response that end with the turn; those ``told`` are known."""
        self._closed = [
            (call.call_id, call.tool, _arguments(call.args), known.get(call.call_id, otherwise))
            for call in messages.extract_tool_calls(response)
            if call.call_id not in told
        ]

    def called(
        self,
        session: SessionId | None,
        call_id: str,
        tool: str,
        args: Mapping[str, object],
        result: ToolResult,
        *,
        seconds: float = 0.0,
    ) -> None:
        """Tell that a call was answered, whether or not it was run."""
        self._facts.tell(
            CALLED,
            {
                "tool_name": tool,
                "args": args,
                "session_id": session,
                "turn_id": self._turn.id,
                "tool_call_id": call_id,
                "result": result.result,
                "status": result.status.value,
                "duration_ms": int(seconds * 1000),
            },
        )

    async def answering(self, text: str) -> None:
        """Take down what is told of an answer that is about to be stored."""
        if self._facts.plugins.implements_hook(ANSWERED):
            said = await self._store.read(stops.read_user_texts, self._turn)
            self._answer = {"user_message": "\n".join(said), "assistant_response": text}

    def ended(self, session: SessionId | None, done: Turn) -> None:
        """Tell that the turn has its outcome."""
        for closed in self._closed:
            self.called(session, *closed)
        facts = {"session_id": session, "turn_id": done.id, "model": done.model or ""}
        answered = done.outcome is TurnOutcome.ANSWERED
        if answered and self._answer is not None:
            self._tell(ANSWERED, {**facts, **self._answer})
        stopped = done.outcome is TurnOutcome.CANCELLED
        self._tell(END, {**facts, "completed": answered, "interrupted": stopped})

    def _tell(self, hook: str, facts: Mapping[str, object]) -> None:
        self._facts.tell(hook, {**facts, "platform": self._platform})


def _arguments(text: str) -> Mapping[str, object]:
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}
