"""Parsing of requests for runs."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, cast

from clew.api.problems import Problem, ProblemError, invalid_request
from clew.api.request_files import RequestFile
from clew.core.entry import Role
from clew.core.grant import GRANT_TERMS
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.api.ag_ui.schemas import ResumeEntry, RunMessage, RunRequest
    from clew.core.client_message import ClientMessage
    from clew.core.grant import GrantTerm

#: Roles of what both sides hold. Other messages are the client's own: its instructions, and
#: what it keeps of thinking and activities.
_HELD_ROLES = frozenset({"user", "assistant", "tool"})
#: Parts that hold a file; one without a name is named so.
_FILE_PARTS = frozenset({"image", "audio", "video", "document"})
#: Fields of an answer to an approval.
_ANSWER_FIELDS = frozenset({"approved", "note", "keep"})
#: Between messages that were sent as one.
_BETWEEN = "\n\n"
_UNSUPPORTED = "unsupported_content"
_OTHER_RUN = Problem(
    status=422,
    message="runId: this run began with another message; a new message is a new run, with a runId "
    "of its own",
    code="idempotency_key_reused",
    param="runId",
)


class HeldMessage(Record):
    """A message as the client holds it, by what tells whether it is up to date."""

    id: str
    role: str
    #: Only of the assistant: other texts are not changed by anybody.
    text: str = ""


class NewUserMessage(Record):
    """A message of the user at the end of the history."""

    id: str
    text: str
    files: tuple[RequestFile, ...]


class InterruptAnswer(Record):
    """The answer to one approval."""

    approval: str
    yes: bool
    note: str | None
    keep: GrantTerm | None


class RunInput(Record):
    """A parsed request for a run."""

    thread: str
    run: str
    held: tuple[HeldMessage, ...]
    #: The messages of the user after all others: those that may be new.
    sent: tuple[NewUserMessage, ...]
    answers: tuple[InterruptAnswer, ...]


def parse_run_request(request: RunRequest) -> RunInput:
    """
    Parse a request.

    :raises ProblemError: if it asks for something unsupported
    """
    if request.tools:
        raise invalid_request(
            "tools: the agent brings its own tools and runs them itself; tools of the front-end "
            "are not supported, so leave the field out or empty",
            param="tools",
            code="unsupported_parameter",
        )
    return RunInput(
        thread=request.thread_id,
        run=request.run_id,
        held=tuple(_hold(one) for one in request.messages if one.role in _HELD_ROLES),
        sent=tuple(_find_sent(request.messages)),
        answers=tuple(_parse_answer(one, at) for at, one in enumerate(request.resume or ())),
    )


def _hold(one: RunMessage) -> HeldMessage:
    text = one.content if one.role == "assistant" and isinstance(one.content, str) else ""
    return HeldMessage(id=one.id, role=one.role, text=text)


def _find_sent(messages: Sequence[RunMessage]) -> Sequence[NewUserMessage]:
    start = len(messages)
    while start and messages[start - 1].role not in ("assistant", "tool"):
        start -= 1
    return [
        _parse_message(one, f"messages[{start + place}]")
        for place, one in enumerate(messages[start:])
        if one.role == "user"
    ]


def _parse_message(one: RunMessage, param: str) -> NewUserMessage:
    """
    Return the text and the files of a message of the user.

    :raises ProblemError: if it contains anything else
    """
    content = one.content
    if isinstance(content, str):
        return NewUserMessage(id=one.id, text=content, files=())
    if not isinstance(content, list):
        raise invalid_request(f"{param}: content is a text or a list of parts", param=param)
    texts: list[str] = []
    files: list[RequestFile] = []
    for place, part in enumerate(cast("list[object]", content)):
        found = _parse_part(part, f"{param}.content[{place}]")
        if isinstance(found, str):
            texts.append(found)
        else:
            files.append(found)
    return NewUserMessage(id=one.id, text="\n".join(texts), files=tuple(files))


def _parse_part(part: object, param: str) -> str | RequestFile:
    told = _require_object(part, param)
    kind = told.get("type")
    if kind == "text" and isinstance(text := told.get("text"), str):
        return text
    if isinstance(kind, str) and kind in _FILE_PARTS:
        return _parse_file(told, kind, param)
    raise invalid_request(
        f"{param}: parts of type {kind!r} are not supported", param=param, code=_UNSUPPORTED
    )


def _parse_file(part: Mapping[str, Any], kind: str, param: str) -> RequestFile:
    param = f"{param}.source"
    source = _require_object(part.get("source"), param)
    if source.get("type") != "data":
        raise invalid_request(
            f"{param}: sources of type {source.get('type')!r} are not supported: send the file "
            "itself, as data in base64; addresses and file ids are not fetched",
            param=param,
            code=_UNSUPPORTED,
        )
    try:
        content = base64.b64decode(source.get("value", ""), validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise invalid_request(f"{param}: the value is not base64", param=param) from None
    metadata: object = part.get("metadata")
    named = cast("dict[str, Any]", metadata).get("filename") if isinstance(metadata, dict) else None
    return RequestFile(
        name=named if isinstance(named, str) and named else kind,
        media_type=str(source.get("mimeType") or "application/octet-stream"),
        content=content,
    )


def _parse_answer(one: ResumeEntry, place: int) -> InterruptAnswer:
    """Return the answer of a resume entry; what was abandoned is denied."""
    param = f"resume[{place}].payload"
    given: object = {} if one.payload is None else one.payload
    told = {"approved": given} if isinstance(given, bool) else _require_object(given, param)
    if one.status == "cancelled":
        return InterruptAnswer(approval=one.interrupt_id, yes=False, note=None, keep=None)
    yes, note, keep = told.get("approved"), told.get("note"), told.get("keep")
    # Of an answer that says more, nothing is carried out: it may be a condition.
    if (
        not isinstance(yes, bool)
        or told.keys() - _ANSWER_FIELDS
        or keep not in (None, *GRANT_TERMS)
        or not isinstance(note, str | None)
    ):
        raise invalid_request(
            f'{param}: nothing was answered: send {{"approved": true}} or {{"approved": false}}, '
            f'with a text as "note" or "keep" ({", ".join(GRANT_TERMS)}) if you like, and nothing '
            "else: arguments are run as they were shown",
            param=param,
        )
    return InterruptAnswer(
        approval=one.interrupt_id,
        yes=yes,
        note=note or None,
        keep=GRANT_TERMS[keep] if yes and keep else None,
    )


def _require_object(value: object, param: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise invalid_request(f"{param}: this is not an object", param=param, code="invalid_type")
    return cast("dict[str, Any]", value)


def select_new(
    sent: Sequence[NewUserMessage], stored: Iterable[ClientMessage]
) -> NewUserMessage | None:
    """
    Return the messages that are not stored yet, as one; ``None`` if there is none.

    A message is known by its id and its text, so that it is taken once however often it is
    sent. Those before one that is known were sent with it.
    """
    known = {one.id: one.text for one in stored if one.role is Role.USER}
    new: list[NewUserMessage] = []
    for one in sent:
        before = known.get(one.id)
        if before is not None and _ends_with(before, one.text):
            new.clear()
        else:
            new.append(one)
    if not new:
        return None
    return NewUserMessage(
        id=new[-1].id,
        text=_BETWEEN.join(one.text for one in new if one.text),
        files=tuple(file for one in new for file in one.files),
    )


def _ends_with(stored: str, text: str) -> bool:
    stored, text = stored.strip(), text.strip()
    return stored == text or stored.endswith(f"{_BETWEEN}{text}")


def refuse_other_run(order: RunInput, id: str | None) -> None:
    """
    Check that a run that was begun before is not asked for with a new message.

    :raises ProblemError: if it is
    """
    if order.sent and id not in [one.id for one in order.sent]:
        raise ProblemError(_OTHER_RUN)
