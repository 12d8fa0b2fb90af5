"""
The schemas of tools, made once per worker.

Every world of a test makes all built-in tools anew. To read their signatures and docstrings takes
longer than most tests do, and finds the same each time.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from inspect import isfunction, ismethod
from typing import TYPE_CHECKING, Any

from pydantic_ai import _function_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_made: dict[Hashable, _function_schema.FunctionSchema] = {}
_make = _function_schema.function_schema


def keep() -> None:
    """From now on, functions of the same code have the same schema."""
    _function_schema.function_schema = _of


def _of(
    function: Callable[..., Any], *args: Any, **options: Any
) -> _function_schema.FunctionSchema:
    plain = function.__func__ if ismethod(function) else function
    if not isfunction(plain) or hasattr(plain, "__wrapped__"):
        return _make(function, *args, **options)
    key = (
        *(plain.__code__, plain.__module__, plain.__name__, plain.__doc__, ismethod(function)),
        *(repr(plain.__defaults__), repr(plain.__kwdefaults__)),
        *(repr(sorted(plain.__annotations__.items())), args, repr(sorted(options.items()))),
    )
    if key not in _made:
        _made[key] = _make(function, *args, **options)
    made = _made[key]
    return replace(made, function=function, json_schema=copy.deepcopy(made.json_schema))
