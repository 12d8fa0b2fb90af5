"""Titles: what a conversation is called before a person names it."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.messages import text_of
from clew.core.text import truncate_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from clew.agent.models import Model

#: Characters of a title.
LONGEST = 60
#: How long the model may take.
DEADLINE = timedelta(seconds=30)
#: Characters of each side of the exchange that the model reads.
_READ = 1_500
#: What does not belong to a title at its ends.
_MARKS = " \t#*_`\"'“”„«»-\N{EN DASH}—.:"

_PROMPT = """\
Name the conversation below in 3 to 7 words, in its own language, as a heading without quotes and \
without a full stop. Write only the name.

<person>
{said}
</person>
<assistant>
{answer}
</assistant>\
"""


async def ask_for_title(model: Model, *, said: str, answer: str) -> ModelResponse:
    """What the model would call the conversation; whatever goes wrong with it is raised."""
    prompt = _PROMPT.format(said=truncate_text(said, _READ), answer=truncate_text(answer, _READ))
    async with asyncio.timeout(DEADLINE.total_seconds()):
        return await model_request(
            model,
            [ModelRequest.user_text_prompt(prompt)],
            model_settings=ModelSettings(max_tokens=200),
        )


def title_in(response: ModelResponse) -> str | None:
    """The title that a response holds; ``None`` if there is none that could be used."""
    if response.finish_reason == "length":
        return None
    lines = [line for line in text_of(response).splitlines() if line.strip()]
    return None if len(lines) != 1 else cleaned(lines[0])


def title_from(said: str) -> str | None:
    """A title made of what a person said first; ``None`` if it has no words."""
    first = next((line for line in said.splitlines() if cleaned(line)), "")
    return cleaned(first)


def cleaned(line: str) -> str | None:
    """One line as a title: no marks around it, no second space, capped at a word."""
    bare = re.sub(r"\s+", " ", line).strip(_MARKS)
    if len(bare) <= LONGEST:
        return bare or None
    words = bare[: LONGEST - 1].rpartition(" ")[0]
    return truncate_text(bare, LONGEST) if len(words) < LONGEST // 2 else f"{words}…"
