"""``GET /openapi.json``: the endpoints, documented from their declarations."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

from clew.api.endpoints import JSON, STREAM
from clew.api.schemas import EmptyInput, Problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic import BaseModel

    from clew.api.endpoints import Endpoint, ResponseSpec

Json = dict[str, Any]
_TYPES = {JSON: "object"}
_REF = "#/components/schemas/{model}"


def build_openapi(endpoints: Sequence[Endpoint], *, version: str, with_token: bool) -> Json:
    """Return the OpenAPI document."""
    _, definitions = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(_collect_models(endpoints))],
        ref_template=_REF,
    )
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        operation = _build_operation(endpoint, with_token=with_token)
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


def _collect_models(endpoints: Iterable[Endpoint]) -> Iterable[type[BaseModel]]:
    yield Problems
    for endpoint in endpoints:
        if endpoint.body is not EmptyInput:
            yield endpoint.body
        for reply in endpoint.responses.values():
            if reply.model is not None:
                yield reply.model


def _build_operation(endpoint: Endpoint, *, with_token: bool) -> Json:
    operation: Json = {
        "summary": endpoint.summary,
        "operationId": _operation_id(endpoint),
        "parameters": [
            *_path_parameters(endpoint),
            *_query_parameters(endpoint),
            *_header_parameters(endpoint),
        ],
        "responses": {
            **{
                str(status): _response_schema(reply) for status, reply in endpoint.responses.items()
            },
            **{str(status): _problem_schema(status) for status in endpoint.problem_statuses},
        },
    }
    if endpoint.body is not EmptyInput:
        content = {JSON: {"schema": _schema_ref(endpoint.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    if with_token and not endpoint.is_public:
        operation["security"] = [{"token": []}]
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    return f"{endpoint.method.lower()}{re.sub(r'[^a-z0-9]+', '_', endpoint.path.lower())}"


def _path_parameters(endpoint: Endpoint) -> Iterable[Json]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(endpoint: Endpoint) -> Iterable[Json]:
    described: Json = endpoint.query.model_json_schema()
    required: list[str] = described.get("required", [])
    for name, schema in described.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": schema}


def _header_parameters(endpoint: Endpoint) -> Iterable[Json]:
    for name, says in endpoint.headers.items():
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": says,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }


def _response_schema(reply: ResponseSpec) -> Json:
    # A stream has no schema: its events differ.
    content: Json = {
        media: {} if media == STREAM else {"schema": {"type": _TYPES.get(media, "string")}}
        for media in reply.media
    }
    if reply.model is not None:
        content[JSON] = {"schema": _schema_ref(reply.model)}
    elif not reply.media:
        content[JSON] = {"schema": {"type": "object"}}
    return {"description": reply.description, "content": content}


def _problem_schema(status: int) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": _schema_ref(Problems)}},
    }


def _schema_ref(model: type[BaseModel]) -> Json:
    return {"$ref": _REF.format(model=model.__name__)}
