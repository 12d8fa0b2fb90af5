"""``/v1/conversations``: conversations and their messages in OpenAI's format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response

from clew.api.idempotency import idempotency_key
from clew.api.problems import invalid_request
from clew.api.request_files import prepare_history
from clew.api.responses.handlers import list_json
from clew.api.responses.input_items import parse_input
from clew.api.responses.resource import message_item, unix_seconds, user_item
from clew.core.entry import EntryKind, Role
from clew.core.ids import EntryId
from clew.errors import NotFound

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.responses.schemas import ConversationRequest, ItemsQueryParams, MetadataRequest
    from clew.api.schemas import EmptyInput
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId

_ITEM = re.compile(r"msg_([0-9a-f]{28})(?:_([0-9]{1,6}))?")
#: Above every seq of a log.
_END = 10**15
_PAGE = 200


async def create_conversation(
    call: HttpCall, query: EmptyInput, body: ConversationRequest
) -> Response:
    said = parse_input(body.items or [], param="items")
    if any(one.files for one in said):
        raise invalid_request("items: only the message of a response may have files", param="items")
    conversation = await call.engine.responses.open_conversation(
        scope=call.context.viewer,
        history=prepare_history(call.engine.requests, [one.as_earlier for one in said]),
        metadata=body.metadata or {},
        key=idempotency_key(call.request),
    )
    return await _show(call, conversation)


async def show_conversation(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    return await _show(call, call.conversation)


async def update_conversation(call: HttpCall, query: EmptyInput, body: MetadataRequest) -> Response:
    await call.engine.responses.set_metadata(call.conversation, body.metadata or {})
    return await _show(call, call.conversation)


async def delete_conversation(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    await call.engine.delete_conversation(call.conversation, viewer=call.context.viewer)
    return JSONResponse(
        {"id": call.conversation, "object": "conversation.deleted", "deleted": True}
    )


async def list_items(call: HttpCall, query: ItemsQueryParams, body: EmptyInput) -> Response:
    start = None if query.after is None else (await _find_entry(call, query.after)).seq
    found = await _read_items(call, start, query)
    items = [_entry_item(entry) for entry in found[: query.limit]]
    return JSONResponse(list_json(items, more=len(found) > query.limit))


async def show_item(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    name = call.request.path_params["item"]
    return JSONResponse({**_entry_item(await _find_entry(call, name)), "id": name})


async def refuse_change(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    raise invalid_request(
        "the log of a conversation only grows, and only by turns: ask for a response to add a "
        "message, and rewind or delete the conversation to take something back",
        code="unsupported_parameter",
    )


async def _show(call: HttpCall, conversation: ConversationId) -> Response:
    view = await call.engine.get_view(conversation, viewer=call.context.viewer)
    return JSONResponse(
        {
            "id": conversation,
            "object": "conversation",
            "created_at": unix_seconds(view.conversation.created_at),
            "metadata": dict(await call.engine.responses.get_metadata(conversation)),
        }
    )


async def _read_items(call: HttpCall, start: int | None, query: ItemsQueryParams) -> list[Entry]:
    """Return the messages after an item in the order that is asked for, one more than a page."""
    found: list[Entry] = []
    at = (0 if query.order == "asc" else _END) if start is None else start
    while len(found) <= query.limit:
        if query.order == "asc":
            page = list(await call.engine.read_entries(call.conversation, after=at, limit=_PAGE))
        else:
            page = list(
                await call.engine.read_last_entries(call.conversation, before=at, limit=_PAGE)
            )[::-1]
        if not page:
            break
        at = page[-1].seq
        found += [entry for entry in page if _is_item(entry)]
    return found


async def _find_entry(call: HttpCall, name: str) -> Entry:
    """
    Return the message of an item: by its id in a list, or in the output of a response.

    :raises NotFound: if the conversation has no such item
    """
    matched = _ITEM.fullmatch(name)
    if matched is None:
        raise NotFound("item", name)
    if matched[2] is not None:
        return await _find_output(call, name, f"trn_{matched[1]}", int(matched[2]))
    id = EntryId(f"ent_{matched[1]}")
    seq = await call.engine.responses.find_entry_seq(id)
    if seq is None:
        raise NotFound("item", name)
    page = await call.engine.read_entries(call.conversation, after=seq - 1, limit=1)
    if not page or page[0].id != id or not _is_item(page[0]):
        raise NotFound("item", name)
    return page[0]


async def _find_output(call: HttpCall, name: str, turn: str, position: int) -> Entry:
    seq = await call.engine.responses.find_output_seq(call.conversation, turn, position)
    if seq is None:
        raise NotFound("item", name)
    return (await call.engine.read_entries(call.conversation, after=seq - 1, limit=1))[0]


def _is_item(entry: Entry) -> bool:
    is_text = entry.kind is EntryKind.MESSAGE and bool(entry.text.strip())
    return is_text and entry.role in (Role.USER, Role.ASSISTANT) and not entry.is_caused


def _entry_item(entry: Entry) -> dict[str, Any]:
    id = f"msg_{entry.id.removeprefix('ent_')}"
    if entry.role is Role.USER:
        return user_item(id, entry.text)
    return message_item(id, entry.text)
