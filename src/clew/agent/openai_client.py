"""
OpenAI client that does not transform every message of every request.

The official client compares each message, part and tool with their declared types, to
rename keys and to encode dates and files: 0.12 ms per message, 48 ms of every step at 400.
Pydantic AI passes plain JSON, in which there is nothing to transform. Here the long lists
bypass it; everything else is left to the official client, so that arguments of later
versions work too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice

from clew.agent.openai_transform import bypass_transform, unwrap_value

if TYPE_CHECKING:
    from openai._models import FinalRequestOptions
    from openai.resources.responses import AsyncResponses

    # For type checkers the SDK's cached properties are plain ones, so overrides must be, too.
    cached_property = property
else:
    from functools import cached_property


class OpenAIClient(AsyncOpenAI):
    """
    :class:`openai.AsyncOpenAI` with requests that cost little more for long conversations.

    It takes the same arguments, sends the same requests and returns the same answers. Only
    ``chat.completions.create`` and ``responses.create`` differ, and only for lists of plain
    dictionaries: these must contain only JSON, or :class:`TypeError` is raised.
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
        # The official client sends the name of its class.
        return super().user_agent.replace(type(self).__name__, AsyncOpenAI.__name__)

    async def _prepare_options(self, options: FinalRequestOptions) -> FinalRequestOptions:
        # Runs once per attempt, on a copy of the options, after the transform.
        if isinstance(options.json_data, dict):
            body = cast("dict[str, object]", options.json_data)
            options.json_data = {key: unwrap_value(value) for key, value in body.items()}
        return await super()._prepare_options(options)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(self, **arguments: Any) -> Any:
        create: Any = super().create
        return ensure_choice(await create(**bypass_transform(arguments, "messages", "tools")))


def ensure_choice(answer: Any) -> Any:
    """
    Return the answer, with an empty message if it has no choice, and content as text.

    All forms of an empty answer become one, which the agent treats as an empty message.
    """
    if not isinstance(answer, ChatCompletion) or getattr(answer, "error", None) is not None:
        return answer
    if not getattr(answer, "choices", None):
        nothing = ChatCompletionMessage(role="assistant", content=None)
        answer.choices = [Choice(index=0, finish_reason="stop", message=nothing)]
    for choice in answer.choices:
        content: object = choice.message.content
        if isinstance(content, list):
            choice.message.content = _join_text_parts(cast("list[object]", content)) or None
    return answer


def _join_text_parts(parts: list[object]) -> str:
    mappings = [cast("dict[str, object]", part) for part in parts if isinstance(part, dict)]
    return "".join(text for part in mappings if isinstance(text := part.get("text"), str))
