"""What the process imports from which the others are forked: all that a turn needs, no thread."""

from __future__ import annotations

from clew.agent.models import ModelSpec, build_model
from tests.killing import child

__all__ = ["child"]

# The libraries of a model are imported when the first one is made.
build_model(ModelSpec(name="openai-chat:fake-model", base_url="http://127.0.0.1:1/v1"))
