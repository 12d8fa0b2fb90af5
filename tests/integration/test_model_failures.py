"""A provider that fails: what the person is told, what is stored, and that the next turn works."""

from __future__ import annotations

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
    """What was logged, which nobody has to render."""
    with capture_logs() as found:
        yield found  # pyright: ignore[reportReturnType]  (declared as any mappings)


@pytest.fixture(scope="module", params=FORMATS)
async def form(request: pytest.FixtureRequest) -> Format:
    return request.param


@pytest.fixture(scope="module")
async def desk(form: Format, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Desk]:
    home = tmp_path_factory.mktemp("desk")
    async with open_desk(home, form, agent=Agent(tools=[look], retries=RETRIES)) as found:
        yield found
        assert await found.check() == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_failure_that_passes_is_not_seen_in_the_answer(
    desk: Desk, form: Format, case: Case
) -> None:
    for stream in (False, True):
        _, wrong = await cases.play(desk, case, form, stream=stream, forever=False)
        assert wrong == [], f"{stream=}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_failure_that_goes_on_is_told_and_the_next_turn_works(
    desk: Desk, form: Format, case: Case
) -> None:
    # Every other one each way; `python -m tests.soak failures` plays them all.
    stream = (CASES.index(case) + FORMATS.index(form)) % 2 == 0
    _, wrong = await cases.play(desk, case, form, stream=stream, forever=True)
    assert wrong == []
