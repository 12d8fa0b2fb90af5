"""
The OpenAI client without its walk over every message of every request.

The official client compares each message, part and tool with their declared types, to rename keys
and to encode dates and files: 0.12 ms per message, 48 ms of every step at 400. Pydantic AI hands
over plain JSON, in which it finds nothing to do. The long lists pass it by here; all else is left
to the official client, so an argument that a later version adds cannot be lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions
    from openai.resources.responses import AsyncResponses

    # The SDK shows its cached properties to type checkers as these, so what overrides them has to.
    cached_property = property
else:
    from functools import cached_property

__all__ = ["OpenAIClient", "hide"]


class OpenAIClient(AsyncOpenAI):
    """
    An :class:`openai.AsyncOpenAI` whose requests cost little more when a conversation is long.

    It takes the same arguments, sends the same requests and gives the same answers. Only
    ``chat.completions.create`` and ``responses.create`` differ, and only for lists of plain
    dictionaries: what is in them must be JSON, or :class:`TypeError` is raised.
    """

    @cached_property
    def chat(self) -> AsyncChat:
        return _Chat(self)

    @cached_property
    def responses(self) -> AsyncResponses:
        from clew.agent.openai_responses import Responses  # noqa: PLC0415  (a fifth of the SDK)

        return Responses(self)

    @property
    def user_agent(self) -> str:
        # The official client tells the name of its class.
        return super().user_agent.replace(type(self).__name__, AsyncOpenAI.__name__)

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        # Runs once per attempt, on a copy of the options, after the transform.
        if isinstance(options.json_data, dict):
            body = cast("dict[str, object]", options.json_data)
            options.json_data = {key: _shown(value) for key, value in body.items()}
        return await super()._prepare_options(options)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(self, **arguments: Any) -> Any:
        create: Any = super().create
        return with_a_choice(await create(**hide(arguments, "messages", "tools")))


def with_a_choice(answer: Any) -> Any:
    """
    The answer, with an empty message where it has no choice or content of a wrong form.

    All ways to say nothing become one, which the agent meets as it meets an empty message.
    """
    if not isinstance(answer, ChatCompletion) or getattr(answer, "error", None) is not None:
        return answer
    if not getattr(answer, "choices", None):
        nothing = ChatCompletionMessage(role="assistant", content=None)
        answer.choices = [Choice(index=0, finish_reason="stop", message=nothing)]
    for choice in answer.choices:
        content: object = choice.message.content
        if isinstance(content, list):
            choice.message.content = _text_of_parts(cast("list[object]", content)) or None
    return answer


def _text_of_parts(parts: list[object]) -> str:
    mappings = [cast("dict[str, object]", part) for part in parts if isinstance(part, dict)]
    return "".join(text for part in mappings if isinstance(text := part.get("text"), str))


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A value that the transform lets pass, because it is of no type that it knows."""

    value: object


def hide(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    """The arguments with these lists out of the transform's sight, where they hold plain JSON."""
    hidden = {name: _Hidden(arguments[name]) for name in names if _is_plain(arguments.get(name))}
    return {**arguments, **hidden}


def _is_plain(value: object) -> bool:
    """Whether a value is a list of dictionaries; models of the SDK may stand in for these."""
    return isinstance(value, list) and all(
        isinstance(item, dict) for item in cast("list[object]", value)
    )


def _shown(value: object) -> object:
    return value.value if isinstance(value, _Hidden) else value
