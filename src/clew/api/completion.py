"""Answers in OpenAI's shape: one completion, or its chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.api import sse

if TYPE_CHECKING:
    from clew.api.problems import Problem
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId, InboxId, SessionId, TurnId
    from clew.engine.orders import TokenUsage


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an answer belongs; a turn and its session are known once it has begun."""

    conversation: ConversationId
    session: SessionId | None = None
    turn: TurnId | None = None
    #: What a person is told beside the answer.
    notices: tuple[str, ...] = ()
    #: The answer ends in the middle.
    cut: bool = False

    @classmethod
    def of(cls, end: InputCompleted) -> Place:
        return cls(
            conversation=end.conversation,
            session=end.session,
            turn=None if end.turn is None else end.turn.id,
            notices=end.notices,
            cut=end.cut,
        )

    @property
    def headers(self) -> dict[str, str]:
        found = {
            "X-Clew-Conversation": self.conversation,
            "X-Clew-Session": self.session,
            "X-Clew-Turn": self.turn,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def body(self) -> dict[str, object]:
        return {
            "conversation": self.conversation,
            "session": self.session,
            "turn": self.turn,
            "notices": list(self.notices),
        }

    @property
    def finish(self) -> str:
        """OpenAI's reason for the end of the answer."""
        return "length" if self.cut else "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One answer under way; its id and time follow from the input's, so they stay the same."""

    inbox_id: InboxId
    #: As the client calls it.
    model: str

    def whole(self, text: str, used: TokenUsage, place: Place) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": place.finish,
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": usage(used),
            "clew": place.body,
        }

    def begin(self, *, with_usage: bool) -> bytes:
        return self._chunk({"role": "assistant", "content": ""}, with_usage=with_usage)

    def piece(self, text: str, *, with_usage: bool) -> bytes:
        return self._chunk({"content": text}, with_usage=with_usage)

    def end(self, used: TokenUsage, place: Place, *, with_usage: bool) -> bytes:
        """The last chunks of a stream that went well."""
        last = self._chunk({}, with_usage=with_usage, finish=place.finish, clew=place.body)
        if with_usage:
            tail: dict[str, Any] = {"choices": [], "usage": usage(used), "clew": place.body}
            last += sse.data({**self._head("chat.completion.chunk"), **tail})
        return last + sse.DONE

    def _chunk(
        self, delta: dict[str, str], *, with_usage: bool, finish: str | None = None, **more: object
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice], **more}
        return sse.data({**chunk, "usage": None} if with_usage else chunk)

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.inbox_id.removeprefix('inb_')}",
            "object": kind,
            # An id holds the millisecond in which it was made.
            "created": int(self.inbox_id[4:16], 16) // 1000,
            "model": self.model,
        }


def usage(used: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
    }


def error_chunk(problem: Problem) -> bytes:
    """Ends a stream that could not be ended well: no ``[DONE]`` follows."""
    return sse.data(problem.body)
