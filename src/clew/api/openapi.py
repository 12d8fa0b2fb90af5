"""``GET /openapi.json``: the endpoints, described from their declarations."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from clew.api.endpoints import JSON, STREAM
from clew.api.schemas import Nothing, Problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel

    from clew.api.endpoints import AnyEndpoint, Reply

Json = dict[str, Any]
_REF = "#/components/schemas/{model}"


def describe(endpoints: Sequence[AnyEndpoint], *, version: str, with_token: bool) -> Json:
    """The OpenAPI document."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(_models(endpoints))], ref_template=_REF
    )
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, with_token=with_token)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Clew", "version": version},
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _models(endpoints: Iterable[AnyEndpoint]) -> Iterable[type[BaseModel]]:
    yield Problems
    for endpoint in endpoints:
        if endpoint.body is not Nothing:
            yield endpoint.body
        for reply in endpoint.replies.values():
            if reply.shape is not None:
                yield reply.shape


def _operation(endpoint: AnyEndpoint, *, with_token: bool) -> Json:
    operation: Json = {
        "summary": endpoint.summary,
        "operationId": _operation_id(endpoint),
        "parameters": [*_in_path(endpoint), *_in_query(endpoint), *_in_headers(endpoint)],
        "responses": {
            **{str(status): _reply(reply) for status, reply in endpoint.replies.items()},
            **{str(status): _problem(status) for status in endpoint.all_problems},
        },
    }
    if endpoint.body is not Nothing:
        content = {JSON: {"schema": _ref(endpoint.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    if with_token and not endpoint.open:
        operation["security"] = [{"token": []}]
    return operation


def _operation_id(endpoint: AnyEndpoint) -> str:
    return f"{endpoint.method.lower()}{re.sub(r'[^a-z0-9]+', '_', endpoint.path.lower())}"


def _in_path(endpoint: AnyEndpoint) -> Iterable[Json]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(endpoint: AnyEndpoint) -> Iterable[Json]:
    described: Json = endpoint.query.model_json_schema()
    required: list[str] = described.get("required", [])
    for name, schema in described.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": schema}


def _in_headers(endpoint: AnyEndpoint) -> Iterable[Json]:
    for name, says in endpoint.headers.items():
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": says,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }


def _reply(reply: Reply) -> Json:
    # A schema beside a stream would be one of its events, which differ.
    content: Json = {
        media: {} if media == STREAM else {"schema": {"type": "string"}} for media in reply.media
    }
    if reply.shape is not None:
        content[JSON] = {"schema": _ref(reply.shape)}
    elif not reply.media:
        content[JSON] = {"schema": {"type": "object"}}
    return {"description": reply.says, "content": content}


def _problem(status: int) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": _ref(Problems)}},
    }


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": _REF.format(model=model.__name__)}
