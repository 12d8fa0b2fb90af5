"""Result of a chat completion: built when its input has ended, stored under its key, and sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from clew.api.openai_format import CompletionEncoder, ConversationRef, error_chunk
from clew.api.problems import Problem
from clew.engine.request_service import TokenUsage
from clew.record import Record

if TYPE_CHECKING:
    from starlette.responses import Response


class ChatResult(Record):
    """The text of a completion, or the problem that took its place."""

    completion: CompletionEncoder
    conversation: ConversationRef
    outcome: str | Problem
    usage: TokenUsage

    @property
    def plain_response(self) -> Response:
        """Return the result as one JSON response."""
        if isinstance(self.outcome, Problem):
            return self.outcome.to_response(self.conversation.http_headers)
        body = self.completion.full_response(self.outcome, self.usage, self.conversation)
        return JSONResponse(body, headers=self.conversation.http_headers)

    def build_chunks(self, *, with_usage: bool) -> list[bytes]:
        """Return the whole result as the chunks of a stream."""
        if isinstance(self.outcome, Problem):
            return [error_chunk(self.outcome)]
        return [
            self.completion.first_chunk(with_usage=with_usage),
            self.completion.text_chunk(self.outcome, with_usage=with_usage),
            self.completion.last_chunks(self.usage, self.conversation, with_usage=with_usage),
        ]

    def serialize(self) -> tuple[int, str]:
        """Return the HTTP status and the JSON to store."""
        problem = self.outcome if isinstance(self.outcome, Problem) else None
        kept: dict[str, Any] = {
            "place": {
                **self.conversation.json_body,
                "cut": self.conversation.cut,
                "trace": self.conversation.trace,
            },
            "used": [self.usage.input_tokens, self.usage.cached_tokens, self.usage.output_tokens],
            "text": None if problem else self.outcome,
            "problem": None if problem is None else problem.stored_fields,
        }
        return (200 if problem is None else problem.status), json.dumps(kept)

    @classmethod
    def deserialize(cls, completion: CompletionEncoder, kept: str) -> ChatResult:
        """Rebuild a result from the JSON of ``serialize``."""
        found: dict[str, Any] = json.loads(kept)
        place: dict[str, Any] = {**found["place"], "notices": tuple(found["place"]["notices"])}
        tokens = dict(
            zip(("input_tokens", "cached_tokens", "output_tokens"), found["used"], strict=True)
        )
        return cls(
            completion=completion,
            conversation=ConversationRef(**place),
            outcome=found["text"] if found["problem"] is None else Problem(**found["problem"]),
            usage=TokenUsage(**tokens),
        )
