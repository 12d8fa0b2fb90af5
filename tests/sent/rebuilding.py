"""
Requests made again from a store, and compared with those that came in.

One that was answered, the answer being stored, must be the request of exactly that step. Of one
that failed nothing else is stored than what it was sent: it must be the request of some place in
the log.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clew.agent import messages as codec
from clew.agent.attachments import collect_attachment_digests, insert_attachment_contents
from clew.agent.messages import ModelRequest
from clew.agent.protocols import LoopContext
from clew.agent.request_replay import rebuild_request_body
from clew.core import session as reasons
from clew.core.session_base import extend_base
from clew.core.session_prefix import SessionPrefix
from clew.store.transactions import attachments, context, rows, session_prefixes, sessions
from tests.sent.asides import kind_of, unexplained_asides
from tests.sent.models import model_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.agent.messages import ModelMessage
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.core.session import Session
    from clew.store.contract import Tx
    from clew.store.transactions.context import ContextMessage
    from clew.testing import CapturedRequest
    from tests.sent.shelves import Shelf


async def explain(
    requests: Iterable[CapturedRequest], shelves: Sequence[Shelf]
) -> tuple[Counter[str], list[CapturedRequest]]:
    """Count the requests that follow from the stores, by kind, and those that do not."""
    left = [request for request in requests if request.json is not None]
    # Two providers of a test give the same ids.
    ids = Counter(_response_id(request) for request in left)
    unique = {response for response, count in ids.items() if response and count == 1}
    counts = Counter(_label(request) for request in left)
    # Most come of what was said since the last look; all else would have to be made again, too.
    for newly in (True, False):
        for shelf in shelves:
            if left:
                left = await _unexplained(left, shelf, unique, newly=newly)
    counts.subtract(Counter(_label(request) for request in left))
    return +counts, left


def _label(request: CapturedRequest) -> str:
    kind = kind_of(request)
    return kind or f"{request.format}{' streamed' if request.stream else ''}"


async def _unexplained(
    requests: list[CapturedRequest], shelf: Shelf, unique: set[str], *, newly: bool
) -> list[CapturedRequest]:
    with shelf.reading() as t:
        conversations = _touched(t, shelf) if newly else _conversations(t)
        asides = [request for request in requests if kind_of(request)]
        talks = [Talk(t, conversation) for conversation in conversations]
        left = [
            request
            for request in requests
            if not kind_of(request) and not await _follows(request, talks, shelf, unique)
        ]
        if asides:
            left += await unexplained_asides(asides, t, shelf, conversations)
        if left and not newly and (forgotten_at := _find_last_forgetting(t)):
            left = [request for request in left if not _is_before(request, forgotten_at)]
        return [] if left and not newly and _deleted_some(t) else left


def _touched(t: Tx, shelf: Shelf) -> list[ConversationId]:
    """Conversations with entries that are newer than the last look."""
    found = t.fetch_all(
        "SELECT conversation_id, max(n) FROM entry WHERE n > $1 GROUP BY conversation_id",
        shelf.seen,
    )
    shelf.seen = max((row[1] for row in found), default=shelf.seen)
    return [row[0] for row in found]


def _conversations(t: Tx) -> list[ConversationId]:
    return [row[0] for row in t.fetch_all("SELECT id FROM conversation")]


def _deleted_some(t: Tx) -> bool:
    """Requests of deleted conversations cannot be made again."""
    return bool(
        t.fetch_all(
            "SELECT 1 FROM tombstone UNION ALL SELECT 1 FROM conversation WHERE deleting_at > 0"
        )
    )


def _find_last_forgetting(t: Tx) -> int | None:
    """What was forgotten cannot be made again as it was sent before."""
    found: int | None = t.fetch_value(
        "SELECT max(opened_at) FROM session WHERE opened_by = $1", reasons.FORGET
    )
    return found


def _is_before(request: CapturedRequest, at: int) -> bool:
    return request.ended_wall is not None and request.ended_wall * 1000 <= at


async def _follows(
    request: CapturedRequest, talks: Sequence[Talk], shelf: Shelf, unique: set[str]
) -> bool:
    answer = _response_id(request)
    places = [place for talk in talks for place in talk.answered_by(answer)]
    if not places or answer not in unique:
        places += [place for talk in talks for place in talk.places(request)]
    for place in places:
        if await place.body(request, shelf) == request.json:
            return True
    return False


def _response_id(request: CapturedRequest) -> str | None:
    """The id of the response that was sent whole, as the library keeps it."""
    if request.outcome not in ("answered", "open") or request.status not in (None, 200):
        return None
    prefix = {"chat": "chatcmpl-", "responses": "resp_", "messages": "msg_"}
    return f"{prefix[str(request.format)]}{request.number:06}"


def _is_strict(body: Mapping[str, Any]) -> bool:
    """Return whether tools are strict, which depends on the server, not on the store."""
    tools: list[dict[str, Any]] = body.get("tools", [])
    return any(tool.get("function", tool).get("strict") for tool in tools)


@dataclass(kw_only=True)
class Place:
    """A place in the log, and the context there."""

    t: Tx
    session: Session
    messages: Sequence[ContextMessage]
    _bodies: dict[tuple[str, str, bool, bool], Any] = field(default_factory=dict[Any, Any])

    @property
    def asks(self) -> bool:
        """Return whether the context here leads to a request."""
        loaded = self.loaded
        return bool(loaded) and isinstance(loaded[-1], ModelRequest)

    @cached_property
    def loaded(self) -> list[ModelMessage]:
        """The messages; none where a test has made them unreadable."""
        try:
            found = [codec.load_message(message.message) for message in self.messages]
        except ValueError:
            return []
        contents = attachments.read_contents(self.t, collect_attachment_digests(found))
        return [insert_attachment_contents(message, contents) for message in found]

    @property
    def _prefix(self) -> SessionPrefix | None:
        if self.session.instructions is None:
            return None
        tools = self.session.tools
        return SessionPrefix(
            instructions=self.session.instructions,
            tools=None if tools is None else session_prefixes.read_tools(self.t, tools),
        )

    async def body(self, request: CapturedRequest, shelf: Shelf) -> Any:
        """The request that would be made here, in the format and for the model of another."""
        assert request.json is not None
        assert request.format is not None
        key = (request.format, str(request.json["model"]), request.stream, _is_strict(request.json))
        if key not in self._bodies:
            self._bodies[key] = await self._made(shelf, *key)
        return self._bodies[key]

    async def _made(self, shelf: Shelf, form: str, name: str, stream: bool, strict: bool) -> Any:
        found = LoopContext(
            messages=self.loaded,
            prefix=self._prefix,
            steps=0,
        )
        model = model_of(form, name, strict=strict)
        body = await rebuild_request_body(shelf.loop, found, model, stream=stream)
        assert body is not None
        return json.loads(body)


class Talk:
    """One conversation as it is stored."""

    def __init__(self, t: Tx, conversation: ConversationId) -> None:
        self._t, self._id = t, conversation
        self._sessions = {each.id: each for each in sessions.list_sessions(t, conversation)}
        self._entries = rows.ENTRY.fetch_all(
            t, "WHERE conversation_id = $1 ORDER BY seq", conversation
        )
        self._places: dict[int, Place] = {}

    def answered_by(self, response_id: str | None) -> Iterator[Place]:
        """Return the origin of the requests that this response answers."""
        if response_id is None:
            return
        for entry in self._entries:
            if f'"provider_response_id":"{response_id}"' in entry.message and (
                (place := self._before(entry)).asks
            ):
                yield place

    def places(self, request: CapturedRequest) -> Iterator[Place]:
        """Every place where the request may have been made, the likeliest first."""
        body = request.body.decode()
        for entry in reversed(self._entries):
            if entry.kind.value == "attempt":
                yield from self._asking(self._before(entry))
        for entry in reversed(self._entries):
            if entry.role is not None and entry.role.value != "assistant":
                # Files that came along are sent apart from it.
                text = json.dumps(entry.text.partition("\n[file ")[0])[1:-1]
                if entry.role.value != "user" or text in body:
                    yield from self._asking(self._at(entry.session_id, entry.seq))
        for session in self._sessions.values():
            yield from self._asking(self._at(session.id, session.opened_seq))

    def _asking(self, place: Place) -> Iterator[Place]:
        if place.asks:
            yield place

    def _before(self, entry: Entry) -> Place:
        return self._at(entry.session_id, entry.seq - 1)

    def _at(self, session_id: Any, seq: int) -> Place:
        key = hash((session_id, seq))
        if key not in self._places:
            session = self._sessions[session_id]
            base = extend_base(
                sessions.get_base(self._t, session_id), opened_seq=session.opened_seq, last_seq=seq
            )
            messages = context.expand_base(self._t, self._id, base)
            self._places[key] = Place(t=self._t, session=session, messages=messages)
        return self._places[key]
