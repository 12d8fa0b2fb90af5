"""Cached schemas of tools are those that the library would send."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from clew.agent.model_spec import ModelSpec
from clew.agent.models import build_model

_OBJECT: dict[str, Any] = {
    "type": "object",
    "title": "Arguments",
    "properties": {
        "path": {"type": "string", "title": "Path", "minLength": 1},
        "options": {"$ref": "#/$defs/Options", "default": {}},
    },
    "required": ["path"],
    "$defs": {"Options": {"type": "object", "properties": {"deep": {"type": "boolean"}}}},
}


def _build(name: str) -> Model:
    return build_model(ModelSpec(name=name, setting="model.name", api_key="key"))


def _customize(model: Model, schema: dict[str, Any], strict: bool | None) -> ToolDefinition:
    tool = ToolDefinition(name="read", parameters_json_schema=schema, strict=strict)
    return model.customize_request_parameters(
        ModelRequestParameters(function_tools=[tool])
    ).function_tools[0]


@pytest.mark.parametrize("name", ["openai-chat:m", "openai:gpt-5", "anthropic:claude-sonnet-5"])
@pytest.mark.parametrize("strict", [None, True, False])
def test_a_schema_is_sent_as_the_library_would_send_it_each_time(
    name: str, strict: bool | None
) -> None:
    model, plain = _build(name), _build(name)
    cached = model.profile["json_schema_transformer"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
    assert cached is not None
    vars(plain)["profile"] = {**plain.profile, "json_schema_transformer": cached.__mro__[1]}
    for schema in (_OBJECT, {**_OBJECT, "additionalProperties": False}):
        expected = _customize(plain, schema, strict)
        assert [_customize(model, schema, strict) for _ in range(3)] == [expected] * 3


def test_equal_schemas_of_other_tools_and_a_changed_one_are_transformed_each() -> None:
    model = _build("openai-chat:m")
    one, other = dict(_OBJECT), {**_OBJECT, "required": ["path", "options"]}
    sent = [_customize(model, schema, None).parameters_json_schema for schema in (one, other)]
    assert [schema["required"] for schema in sent] == [["path"], ["path", "options"]]
