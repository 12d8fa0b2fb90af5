"""An answer to a chat completion: made when the input has ended, kept under its key, sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from clew.api.completion import Completion, Place, error_chunk
from clew.api.problems import Problem
from clew.engine.orders import TokenUsage

if TYPE_CHECKING:
    from starlette.responses import Response


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a client gets: a text, or why there is none."""

    completion: Completion
    place: Place
    said: str | Problem
    used: TokenUsage

    @property
    def plain(self) -> Response:
        if isinstance(self.said, Problem):
            return self.said.response(self.place.headers)
        body = self.completion.whole(self.said, self.used, self.place)
        return JSONResponse(body, headers=self.place.headers)

    def chunks(self, *, with_usage: bool) -> list[bytes]:
        """The whole answer as a stream."""
        if isinstance(self.said, Problem):
            return [error_chunk(self.said)]
        return [
            self.completion.begin(with_usage=with_usage),
            self.completion.piece(self.said, with_usage=with_usage),
            self.completion.end(self.used, self.place, with_usage=with_usage),
        ]

    def to_keep(self) -> tuple[int, str]:
        """The status and what is kept of it."""
        problem = self.said if isinstance(self.said, Problem) else None
        kept: dict[str, Any] = {
            "place": {**self.place.body, "cut": self.place.cut},
            "used": [self.used.input_tokens, self.used.cached_tokens, self.used.output_tokens],
            "text": None if problem else self.said,
            "problem": None if problem is None else problem.kept,
        }
        return (200 if problem is None else problem.status), json.dumps(kept)

    @classmethod
    def kept(cls, completion: Completion, kept: str) -> Answer:
        """The answer that ``to_keep`` told."""
        found: dict[str, Any] = json.loads(kept)
        place: dict[str, Any] = {**found["place"], "notices": tuple(found["place"]["notices"])}
        tokens = dict(
            zip(("input_tokens", "cached_tokens", "output_tokens"), found["used"], strict=True)
        )
        return cls(
            completion=completion,
            place=Place(**place),
            said=found["text"] if found["problem"] is None else Problem(**found["problem"]),
            used=TokenUsage(**tokens),
        )
