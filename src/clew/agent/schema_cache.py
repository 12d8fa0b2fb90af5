"""
Parameter schemas of tools in the form that a provider takes, made once per schema.

The library makes them anew for every request of a model, although the tools of a session stay
the same: more than 1 ms of each request with the built-in tools.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic_ai import JsonSchemaTransformer
    from pydantic_ai.models import Model

_TRANSFORMER: Final = "json_schema_transformer"


def cache_schemas(model: Model) -> None:
    """Make a model keep the schemas that it has transformed, by identity: they never change."""
    if (transformer := model.profile.get(_TRANSFORMER)) is not None:
        vars(model)["profile"] = {**model.profile, _TRANSFORMER: _make_caching_class(transformer)}


@cache
def _make_caching_class(cls: type[JsonSchemaTransformer]) -> type[JsonSchemaTransformer]:
    def walk(self: JsonSchemaTransformer) -> dict[str, Any]:
        schema, self.is_strict_compatible = _transform(cls, _Same(self.schema), self.strict)
        return schema

    return type(cls.__name__, (cls,), {"walk": walk})


class _Same:
    """Key that equals only itself; it keeps its object alive, whose identity is so never reused."""

    __slots__ = ("value",)

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=1024)
def _transform(
    cls: type[JsonSchemaTransformer], schema: _Same, strict: bool | None
) -> tuple[dict[str, Any], bool]:
    transformer = cls(schema.value, strict=strict)
    return transformer.walk(), transformer.is_strict_compatible
