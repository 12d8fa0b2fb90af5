"""Titles that name conversations before a person does."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.messages import extract_text
from clew.core.text import truncate_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from clew.agent.models import Model

#: Characters of a title.
MAX_TITLE_CHARS = 60
#: Time limit of the model.
TITLE_TIMEOUT = timedelta(seconds=30)
#: Characters of each side of the exchange sent to the model.
_MAX_EXCERPT_CHARS = 1_500
#: Characters removed at both ends of a title.
_STRIPPED_CHARS = " \t#*_`\"'“”„«»-\N{EN DASH}—.:"

_TITLE_PROMPT = """\
Name the conversation below in 3 to 7 words, in its own language, as a heading without quotes and \
without a full stop. Write only the name.

<person>
{said}
</person>
<assistant>
{answer}
</assistant>\
"""


async def request_title(model: Model, *, said: str, answer: str) -> ModelResponse:
    """Return the model's response with a title; errors of the model are raised."""
    prompt = _TITLE_PROMPT.format(
        said=truncate_text(said, _MAX_EXCERPT_CHARS),
        answer=truncate_text(answer, _MAX_EXCERPT_CHARS),
    )
    async with asyncio.timeout(TITLE_TIMEOUT.total_seconds()):
        return await model_request(
            model,
            [ModelRequest.user_text_prompt(prompt)],
            model_settings=ModelSettings(max_tokens=200),
        )


def parse_title(response: ModelResponse) -> str | None:
    """Return the title in a response; ``None`` if it has no usable one."""
    if response.finish_reason == "length":
        return None
    lines = [line for line in extract_text(response).splitlines() if line.strip()]
    return None if len(lines) != 1 else clean_title(lines[0])


def make_fallback_title(said: str) -> str | None:
    """Return a title from the first user message; ``None`` if it has no words."""
    first = next((line for line in said.splitlines() if clean_title(line)), "")
    return clean_title(first)


def clean_title(line: str) -> str | None:
    """Return a line as a title: without markup around it, single-spaced, cut at a word."""
    bare = re.sub(r"\s+", " ", line).strip(_STRIPPED_CHARS)
    if len(bare) <= MAX_TITLE_CHARS:
        return bare or None
    words = bare[: MAX_TITLE_CHARS - 1].rpartition(" ")[0]
    return (
        truncate_text(bare, MAX_TITLE_CHARS) if len(words) < MAX_TITLE_CHARS // 2 else f"{words}…"
    )
