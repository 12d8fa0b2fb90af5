"""Access of a plugin to the model of the settings: one request beside the conversation."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final, cast

from clew.errors import ClewError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.side_answer import SideAnswer
    from clew.features.hermes.state import HostState

#: Of a request for which the plugin names none.
_SECONDS: Final = 60.0
_MAX_TOKENS: Final = 2_048


class LlmResult(Record):
    """The answer of the model, as plugins read it."""

    text: str
    model: str
    provider: str
    usage: Mapping[str, int]
    #: Of a structured request: the JSON, ``None`` if the answer is none.
    parsed: Any = None

    @property
    def content(self) -> str:
        return self.text


class PluginLlm:
    """The ``ctx.llm`` of a plugin; only the threads of plugins may call the plain forms."""

    def __init__(self, state: HostState, plugin: str) -> None:
        self._state, self._plugin = state, plugin

    def complete(
        self,
        messages: Any,
        *,
        max_tokens: int | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> LlmResult:
        """
        Ask the model, and wait for its answer.

        :raises ClewError: if no application runs, or the caller is its event loop
        :raises Exception: whatever the provider raises
        """
        seconds = timeout or _SECONDS
        return self._wait(self._ask(_join_messages(messages), max_tokens, seconds), seconds)

    def complete_structured(
        self,
        *,
        instructions: str = "",
        input: Any = (),
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> LlmResult:
        """Ask the model for JSON; ``parsed`` is ``None`` if its answer is none."""
        seconds = timeout or _SECONDS
        prompt = _ask_for_json(instructions, input, json_schema)
        return self._wait(self._ask_parsed(prompt, max_tokens, seconds), seconds)

    async def acomplete(
        self,
        messages: Any,
        *,
        max_tokens: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (of Hermes)
        **more: Any,
    ) -> LlmResult:
        """Ask the model, from asynchronous code."""
        asked = self._ask(_join_messages(messages), max_tokens, timeout or _SECONDS)
        return await asyncio.wrap_future(self._submit(asked))

    async def acomplete_structured(
        self,
        *,
        instructions: str = "",
        input: Any = (),
        json_schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  (of Hermes)
        **more: Any,
    ) -> LlmResult:
        """Ask the model for JSON, from asynchronous code."""
        prompt = _ask_for_json(instructions, input, json_schema)
        asked = self._ask_parsed(prompt, max_tokens, timeout or _SECONDS)
        return await asyncio.wrap_future(self._submit(asked))

    def _wait(self, asked: Any, seconds: float) -> LlmResult:
        return self._submit(asked).result(seconds + 1)

    def _submit(self, asked: Any) -> Any:
        loop = self._state.loop
        if loop is None or self._state.services is None:
            asked.close()
            raise ClewError(
                f"{self._plugin}: the model cannot be asked before Clew runs: call ctx.llm in a "
                "hook, a tool or a command, not in register"
            )
        return asyncio.run_coroutine_threadsafe(asked, loop)

    async def _ask(self, prompt: str, max_tokens: int | None, seconds: float) -> LlmResult:
        services = self._state.services
        assert services is not None
        answer = await services.ask_model(
            services.settings.model.name,
            prompt,
            setting="model.name",
            max_tokens=max_tokens or _MAX_TOKENS,
            seconds=seconds,
        )
        return _make_result(answer, services.settings.model.name)

    async def _ask_parsed(self, prompt: str, max_tokens: int | None, seconds: float) -> LlmResult:
        from clew.record import replace  # noqa: PLC0415  (few plugins ask for JSON)

        found = await self._ask(prompt, max_tokens, seconds)
        return replace(found, parsed=_parse_json(found.text))


def _make_result(answer: SideAnswer, name: str) -> LlmResult:
    return LlmResult(
        text=answer.text,
        model=answer.model,
        provider=name.partition(":")[0],
        usage={
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "cache_read_tokens": answer.cached_tokens,
        },
    )


def _join_messages(messages: Any) -> str:
    """Return the texts of messages as one prompt."""
    if isinstance(messages, str):
        return messages
    parts = [_read_part(one) for one in cast("list[Any]", list(messages or ()))]
    return "\n\n".join(part for part in parts if part)


def _read_part(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    given = cast("Mapping[str, Any]", one)
    content: Any = given.get("content", given.get("text", ""))
    return content if isinstance(content, str) else _join_messages(content)


def _ask_for_json(instructions: str, input: Any, schema: Mapping[str, Any] | None) -> str:
    shape = f" that fits this JSON schema: {json.dumps(schema)}" if schema else ""
    ending = f"Answer with one JSON value{shape}. Write nothing else."
    return "\n\n".join(part for part in (instructions, _join_messages(input), ending) if part)


def _parse_json(text: str) -> Any:
    """Return the first JSON object or list in a text; ``None`` if there is none."""
    for at, character in enumerate(text):
        if character in "{[":
            try:
                return json.JSONDecoder().raw_decode(text[at:])[0]
            except ValueError:
                continue
    return None
