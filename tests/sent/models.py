"""The product's models, by the format and name of a request."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from clew.agent.models import ModelSpec, build_model

if TYPE_CHECKING:
    from clew.agent.models import Model

_PREFIX = {"chat": "openai-chat", "responses": "openai", "messages": "anthropic"}


@cache
def model_of(form: str, name: str, *, strict: bool = False) -> Model:
    """One that is never reached; for ``strict`` tools OpenAI's own, else another's."""
    if strict:
        return build_model(ModelSpec(name=f"{_PREFIX[form]}:{name}", api_key="x"))
    return model_at(form, name, "http://127.0.0.1:9")


def model_at(form: str, name: str, url: str) -> Model:
    """One that a fake provider serves at ``url``."""
    base = url if form == "messages" else f"{url}/v1"
    return build_model(ModelSpec(name=f"{_PREFIX[form]}:{name}", base_url=base, api_key="x"))
