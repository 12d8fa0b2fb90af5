"""A provider that fails: what the person is told, what is stored, and that the next turn works."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent
from structlog.testing import capture_logs

from tests.failing import cases
from tests.failing.cases import CASES, RETRIES, Case
from tests.failing.desk import FORMATS, open_desk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from structlog.typing import EventDict

    from tests.failing.desk import Desk, Format


def look(at: str) -> str:
    """A tool."""
    return f"seen: {at}"


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    """Return the log records, unrendered."""
    with capture_logs() as found:
        yield found  # pyright: ignore[reportReturnType]  (declared as any mappings)


@pytest.fixture(scope="module")
async def desks(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[dict[Format, Desk]]:
    async with AsyncExitStack() as stack:
        agent = Agent(tools=[look], retries=RETRIES)
        found: dict[Format, Desk] = {
            form: await stack.enter_async_context(
                open_desk(tmp_path_factory.mktemp(form), form, agent=agent)
            )
            for form in FORMATS
        }
        yield found
        for desk in found.values():
            assert await desk.check() == []


def streamed(case: Case, form: Format) -> bool:
    """Every other one is streamed; ``make soak failures`` plays all both ways in each format."""
    return (CASES.index(case) + FORMATS.index(form)) % 2 == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_failure_that_passes_is_not_seen_in_the_answer(
    desks: dict[Format, Desk], case: Case
) -> None:
    form = FORMATS[CASES.index(case) % len(FORMATS)]
    _, wrong = await cases.play(
        desks[form], case, form, stream=not streamed(case, form), forever=False
    )
    assert wrong == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_failure_that_continues_is_reported_and_the_next_turn_works(
    desks: dict[Format, Desk], case: Case
) -> None:
    form = FORMATS[(CASES.index(case) + 2) % len(FORMATS)]
    _, wrong = await cases.play(desks[form], case, form, stream=streamed(case, form), forever=True)
    assert wrong == []
