"""Parsing of requests for responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.chat_request import unknown_model_problem
from clew.api.problems import ProblemError, invalid_request
from clew.api.request_files import EarlierMessage
from clew.api.responses.input_items import parse_input
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.request_files import RequestFile
    from clew.api.responses.input_items import InputMessage
    from clew.api.responses.schemas import ResponseRequest


class ResponseInput(Record):
    """A parsed request for a response."""

    text: str
    files: tuple[RequestFile, ...]
    #: What was said before, if the request does not continue anything.
    history: tuple[EarlierMessage, ...]
    #: NAME or id of the conversation.
    conversation: str | None
    previous: str | None
    stream: bool
    background: bool
    #: Kept with the input, and returned with every look at the response.
    options: dict[str, object]

    @property
    def continues(self) -> bool:
        return self.conversation is not None or self.previous is not None


def parse_response_request(request: ResponseRequest, *, models: Sequence[str]) -> ResponseInput:
    """
    Parse a request.

    :raises ProblemError: if it asks for something unsupported
    """
    _reject_unsupported(request)
    named = request.conversation
    conversation = named if named is None or isinstance(named, str) else named.id
    said = parse_input(request.input)
    if conversation is not None or request.previous_response_id is not None:
        history, new = _split_continued(said)
    else:
        history, new = _split_history(said, request.instructions)
    return ResponseInput(
        text="\n\n".join(one.text for one in new if one.text),
        files=tuple(file for one in new for file in one.files),
        history=history,
        conversation=conversation,
        previous=request.previous_response_id,
        stream=bool(request.stream),
        background=bool(request.background),
        options=_collect_options(request, models),
    )


def _collect_options(request: ResponseRequest, models: Sequence[str]) -> dict[str, object]:
    model = models[0] if request.model is None else request.model
    if model not in models:
        raise ProblemError(unknown_model_problem(model, models))
    return {
        "model": model,
        "instructions": request.instructions,
        "previous_response_id": request.previous_response_id,
        "background": bool(request.background),
        "store": request.store is not False,
        "metadata": request.metadata or {},
    }


def _reject_unsupported(request: ResponseRequest) -> None:
    if request.tools:
        raise _unsupported(
            "tools", "the agent brings its own tools and runs them itself, so leave the field out"
        )
    if request.prompt is not None:
        raise _unsupported("prompt", "there are no stored prompts; send instructions and input")
    if request.text and request.text.format and request.text.format.type != "text":
        raise _unsupported("text.format", "answers are text; other formats are not supported")
    if request.conversation is not None and request.previous_response_id is not None:
        raise invalid_request(
            "conversation and previous_response_id both say what goes on: send one of them",
            param="previous_response_id",
        )
    if request.background and request.store is False:
        raise invalid_request(
            "background: a response that runs in the background is asked for later, so it needs "
            "store",
            param="background",
        )


def _unsupported(field: str, why: str) -> ProblemError:
    return invalid_request(f"{field}: {why}", param=field, code="unsupported_parameter")


def _split_continued(
    said: Sequence[InputMessage],
) -> tuple[tuple[EarlierMessage, ...], Sequence[InputMessage]]:
    """Return the messages to send to a conversation, which has its own history."""
    for place, one in enumerate(said):
        if one.role != "user":
            param = f"input[{place}].role"
            raise invalid_request(
                f"{param}: a conversation that goes on takes messages of the user; it has its own "
                "history and instructions",
                param=param,
            )
    return (), _require_message(said)


def _split_history(
    said: Sequence[InputMessage], instructions: str | None
) -> tuple[tuple[EarlierMessage, ...], Sequence[InputMessage]]:
    """Return what was said before, and the new message."""
    new = _require_message([one for one in said if one.role in ("user", "assistant")])[-1]
    if new.role != "user":
        raise invalid_request("input: the last message must be the user's", param="input")
    before = [one.as_earlier for one in said if one is not new]
    lead = [] if instructions is None else [EarlierMessage(speaker="system", text=instructions)]
    return (*lead, *before), [new]


def _require_message(said: Sequence[InputMessage]) -> Sequence[InputMessage]:
    if not said:
        raise invalid_request("input: there is no message", param="input")
    return said
