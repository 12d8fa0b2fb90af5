"""The endpoints of responses and conversations in OpenAI's format."""

from __future__ import annotations

from clew.api.builtin_endpoints import KEY_HEADERS
from clew.api.endpoints import JSON, STREAM, Endpoint, ResponseSpec
from clew.api.operation_scope import ONE_CONVERSATION, NamedKind, OperationScope
from clew.api.responses import conversations, handlers, schemas

_ONE_RESPONSE = OperationScope(names={"response": NamedKind.RESPONSE})
_RESPONSE = ResponseSpec(description="The response", media=(JSON, STREAM))
_CONVERSATION = {200: ResponseSpec(description="The conversation")}
_RESPONSE_PATH = "/v1/responses/{response}"
_CONVERSATION_PATH = "/v1/conversations/{id}"

RESPONSE_ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/responses",
        handler=handlers.create_response,
        summary="One turn of a conversation, as an OpenAI response",
        body=schemas.ResponseRequest,
        responses={200: _RESPONSE},
        problems=(404, 409, 422, 502),
        headers=KEY_HEADERS,
    ),
    Endpoint(
        method="GET",
        path=_RESPONSE_PATH,
        handler=handlers.show_response,
        summary="A response, or its events from any of them on",
        scope=_ONE_RESPONSE,
        query=schemas.ResponseQueryParams,
        responses={200: ResponseSpec(description="The response")},
        problems=(400, 404),
    ),
    Endpoint(
        method="DELETE",
        path=_RESPONSE_PATH,
        handler=handlers.delete_response,
        summary="Forget a response; its conversation keeps what was said",
        scope=_ONE_RESPONSE,
        responses={200: ResponseSpec(description="It is gone")},
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path=f"{_RESPONSE_PATH}/cancel",
        handler=handlers.cancel_response,
        summary="Stop a response that has not ended",
        scope=_ONE_RESPONSE,
        responses={200: ResponseSpec(description="The response")},
        problems=(404, 409),
    ),
    Endpoint(
        method="GET",
        path=f"{_RESPONSE_PATH}/input_items",
        handler=handlers.list_input_items,
        summary="The message that a response answers",
        scope=_ONE_RESPONSE,
        query=schemas.ItemsQueryParams,
        responses={200: ResponseSpec(description="A list of items")},
        problems=(400, 404),
    ),
    Endpoint(
        method="POST",
        path="/v1/conversations",
        handler=conversations.create_conversation,
        summary="Open a conversation, which may begin with messages",
        body=schemas.ConversationRequest,
        responses=_CONVERSATION,
        # 404: the key's conversation was deleted since; 422: the key had another body.
        problems=(404, 409, 422),
        headers=KEY_HEADERS,
    ),
    Endpoint(
        method="GET",
        path=_CONVERSATION_PATH,
        handler=conversations.show_conversation,
        summary="A conversation with its metadata",
        scope=ONE_CONVERSATION,
        responses=_CONVERSATION,
        problems=(404,),
    ),
    Endpoint(
        method="POST",
        path=_CONVERSATION_PATH,
        handler=conversations.update_conversation,
        summary="Replace its metadata",
        scope=ONE_CONVERSATION,
        body=schemas.MetadataRequest,
        responses=_CONVERSATION,
        problems=(404,),
    ),
    Endpoint(
        method="DELETE",
        path=_CONVERSATION_PATH,
        handler=conversations.delete_conversation,
        summary="Delete it: nobody can read or write it",
        scope=ONE_CONVERSATION,
        responses={200: ResponseSpec(description="It is deleted")},
        problems=(404,),
    ),
    Endpoint(
        method="GET",
        path=f"{_CONVERSATION_PATH}/items",
        handler=conversations.list_items,
        summary="Its messages, the newest first",
        scope=ONE_CONVERSATION,
        query=schemas.ItemsQueryParams,
        responses={200: ResponseSpec(description="A list of items")},
        problems=(400, 404),
    ),
    Endpoint(
        method="POST",
        path=f"{_CONVERSATION_PATH}/items",
        handler=conversations.refuse_change,
        summary="Refused: only turns add to a conversation",
        scope=ONE_CONVERSATION,
        responses={},
        problems=(400, 404),
    ),
    Endpoint(
        method="GET",
        path=f"{_CONVERSATION_PATH}/items/{{item}}",
        handler=conversations.show_item,
        summary="One message",
        scope=ONE_CONVERSATION,
        responses={200: ResponseSpec(description="The item")},
        problems=(404,),
    ),
    Endpoint(
        method="DELETE",
        path=f"{_CONVERSATION_PATH}/items/{{item}}",
        handler=conversations.refuse_change,
        summary="Refused: the log of a conversation only grows",
        scope=ONE_CONVERSATION,
        responses={},
        problems=(400, 404),
    ),
)
