"""Completions and their chunks in OpenAI's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api import sse
from clew.record import Record

if TYPE_CHECKING:
    from clew.api.problems import Problem
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId, InboxId, SessionId, TurnId
    from clew.engine.request_service import TokenUsage


class ConversationRef(Record):
    """The conversation of an answer, with its session and turn once the turn has started."""

    conversation: ConversationId
    session: SessionId | None = None
    turn: TurnId | None = None
    #: The trace of the turn, if it is traced.
    trace: str | None = None
    #: Messages for the person besides the answer.
    notices: tuple[str, ...] = ()
    #: The answer was truncated.
    cut: bool = False

    @classmethod
    def from_result(cls, end: InputCompleted) -> ConversationRef:
        return cls(
            conversation=end.conversation,
            session=end.session,
            turn=None if end.turn is None else end.turn.id,
            trace=None if end.turn is None else end.turn.trace_id,
            notices=end.notices,
            cut=end.cut,
        )

    @property
    def http_headers(self) -> dict[str, str]:
        found = {
            "X-Clew-Conversation": self.conversation,
            "X-Clew-Session": self.session,
            "X-Clew-Turn": self.turn,
            "X-Clew-Trace": self.trace,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def json_body(self) -> dict[str, object]:
        return {
            "conversation": self.conversation,
            "session": self.session,
            "turn": self.turn,
            "notices": list(self.notices),
        }

    @property
    def finish_reason(self) -> str:
        """Return OpenAI's reason for the end of the answer."""
        return "length" if self.cut else "stop"


class CompletionEncoder(Record):
    """Encoder of one answer; id and time derive from the input and therefore never change."""

    inbox_id: InboxId
    #: The name that the client used.
    model: str

    def full_response(self, text: str, used: TokenUsage, place: ConversationRef) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": place.finish_reason,
        }
        return {
            **self._common_fields("chat.completion"),
            "choices": [choice],
            "usage": usage_json(used),
            "clew": place.json_body,
        }

    def first_chunk(self, *, with_usage: bool) -> bytes:
        return self._encode_chunk({"role": "assistant", "content": ""}, with_usage=with_usage)

    def text_chunk(self, text: str, *, with_usage: bool) -> bytes:
        return self._encode_chunk({"content": text}, with_usage=with_usage)

    def last_chunks(self, used: TokenUsage, place: ConversationRef, *, with_usage: bool) -> bytes:
        """Return the last chunks of a successful stream."""
        last = self._encode_chunk(
            {}, with_usage=with_usage, finish=place.finish_reason, clew=place.json_body
        )
        if with_usage:
            tail: dict[str, Any] = {
                "choices": [],
                "usage": usage_json(used),
                "clew": place.json_body,
            }
            last += sse.encode_data({**self._common_fields("chat.completion.chunk"), **tail})
        return last + sse.DONE_CHUNK

    def _encode_chunk(
        self, delta: dict[str, str], *, with_usage: bool, finish: str | None = None, **more: object
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**self._common_fields("chat.completion.chunk"), "choices": [choice], **more}
        return sse.encode_data({**chunk, "usage": None} if with_usage else chunk)

    def _common_fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.inbox_id.removeprefix('inb_')}",
            "object": kind,
            # The id contains the time of its creation in milliseconds.
            "created": int(self.inbox_id[4:16], 16) // 1000,
            "model": self.model,
        }


def usage_json(used: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
    }


def error_chunk(problem: Problem) -> bytes:
    """Return the chunk that ends a failed stream; no ``[DONE]`` follows."""
    return sse.encode_data(problem.json_body)
