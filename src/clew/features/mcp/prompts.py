"""Prompts of MCP servers: messages that people send by a command."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from clew.core.text import is_blank, sanitize_text
from clew.errors import ClewError, UsageError
from clew.features.mcp.connection import CallBroken
from clew.features.mcp.tool_calls import format_block
from clew.plugin.command_messages import send_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.pool import McpPool
    from clew.plugin import CommandCall

#: Prompts of a server that are listed, and seconds for their list.
_MAX_LISTED: Final = 50
_LIST_TIMEOUT: Final = 5.0
#: Characters of a prompt that is sent.
_MAX_PROMPT: Final = 100_000
_MAX_DESCRIPTION: Final = 120


async def describe_prompts(one: ServerConnection) -> list[str]:
    """Return the prompts of a server as people write them; none while it does not answer."""
    found: Sequence[Any] = ()
    with suppress(ClewError, TimeoutError):
        async with asyncio.timeout(_LIST_TIMEOUT):
            found = await one.list_prompts()
    return [_describe(one, prompt) for prompt in found[:_MAX_LISTED]]


def _describe(one: ServerConnection, prompt: Any) -> str:
    said = " ".join(sanitize_text(prompt.description or prompt.title or "").split())
    return f"- {_format_usage(one, prompt)}: {said[:_MAX_DESCRIPTION]}"


def _format_usage(one: ServerConnection, prompt: Any) -> str:
    arguments = (f"{it.name}=…" if it.required else f"[{it.name}=…]" for it in _arguments(prompt))
    return " ".join([f"/{one.name}:{prompt.name}", *arguments])


def _arguments(prompt: Any) -> Sequence[Any]:
    return prompt.arguments or ()


async def send_prompt(pool: McpPool, call: CommandCall, text: str) -> str:
    """
    Send a prompt of a server as a message.

    :raises UsageError: if there is no such prompt, or it takes other arguments
    """
    server, name, rest = (*text.split(maxsplit=2), "", "", "")[:3]
    await pool.load()
    one = pool.get(server)
    prompt = await _find_prompt(one, name)
    arguments = parse_arguments(rest, [it.name for it in _arguments(prompt)])
    missing = [it.name for it in _arguments(prompt) if it.required and it.name not in arguments]
    if missing:
        raise UsageError(f"{', '.join(missing)} is missing: {_format_usage(one, prompt)}")
    written = _format_messages((await one.get_prompt(name, arguments)).messages)
    await send_message(call, written, untrusted=True)
    return f"Sent, from {server}: {' '.join(written.split())[:200]}"


async def _find_prompt(one: ServerConnection, name: str) -> Any:
    try:
        found = {prompt.name: prompt for prompt in await one.list_prompts()}
    except CallBroken as error:
        raise UsageError(str(error)) from error
    if name not in found:
        known = ", ".join(f"/{one.name}:{each}" for each in found) or "none"
        raise UsageError(f"{one.name} has no prompt {name!r}; there are {known}")
    return found[name]


def parse_arguments(text: str, names: Sequence[str]) -> dict[str, str]:
    """
    Return the arguments of a prompt: ``name=value …``, or the whole text for the first.

    :raises UsageError: if it takes none
    """
    if not text.strip():
        return {}
    with suppress(ValueError):  # a quotation mark that is not closed is text
        pairs = [word.partition("=") for word in shlex.split(text)]
        if all(equals and name in names for name, equals, _ in pairs):
            return {name: value for name, _, value in pairs}
    if not names:
        raise UsageError("this prompt takes no arguments")
    return {names[0]: text.strip()}


def _format_messages(messages: Iterable[Any]) -> str:
    """
    Return the messages of a prompt as one of a person.

    :raises UsageError: if there is nothing in them
    """
    parts = [(one.role, sanitize_text(format_block(one.content))) for one in messages]
    text = "\n\n".join(said if role == "user" else f"[{role}] {said}" for role, said in parts)
    if is_blank(text):
        raise UsageError("the prompt is empty")
    if len(text) > _MAX_PROMPT:
        raise UsageError(f"the prompt has more than {_MAX_PROMPT:,} characters")
    return text
