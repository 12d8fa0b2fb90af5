"""Every failure of a provider, once and for ever, whole and streamed, in all three formats."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from pydantic_ai import Agent

from tests.failing import cases
from tests.failing.cases import CASES, RETRIES
from tests.failing.desk import FORMATS, open_desk
from tests.sent import unexplained
from tests.sent.shelves import of_means
from tests.soak import Table

if TYPE_CHECKING:
    from tests.failing.cases import Case
    from tests.failing.desk import Desk, Format

_MODES = tuple((form, stream) for form in FORMATS for stream in (False, True))


def run() -> Table:
    # Each failure is logged with its traceback, which nobody reads here.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    found = asyncio.run(_all())
    rows = tuple(_row(case, found) for case in CASES)
    wrong = [sentence for _, complaints in found.values() for sentence in complaints]
    for sentence in wrong:
        print(sentence)
    return Table(
        title="Failures of a provider",
        columns=(
            "failure",
            *(f"{form}{', streamed' if stream else ''}" for form, stream in _MODES),
            "told",
        ),
        rows=rows,
        passed=not wrong,
    )


Found = dict[tuple[str, str, bool], tuple[tuple[str, str], list[str]]]


async def _all() -> Found:
    found: Found = {}
    for form in FORMATS:
        with tempfile.TemporaryDirectory(prefix="clew-soak-") as home:
            found |= await _of(form, Path(home))
    return found


async def _of(form: Format, home: Path) -> Found:
    async with open_desk(home, form, agent=Agent(tools=[look], retries=RETRIES)) as desk:
        found = {
            (case.name, form, stream): await _both(desk, case, form, stream)
            for case in CASES
            for stream in (False, True)
        }
        assert await desk.check() == []
        shelf = of_means(desk.means)
        assert shelf is not None
        assert await unexplained(desk.provider.wait_until_settled(), shelf) == []
        return found


async def _both(
    desk: Desk, case: Case, form: Format, stream: bool
) -> tuple[tuple[str, str], list[str]]:
    once, wrong = await cases.play(desk, case, form, stream=stream, forever=False)
    ever, more = await cases.play(desk, case, form, stream=stream, forever=True)
    where = f"{case.name}, {form}, {stream=}"
    cell = f"{once.outcome} after {len(once.requests)}; {ever.code or 'answered'} after "
    return (f"{cell}{len(ever.requests)}", ever.text), [f"{where}: {s}" for s in (*wrong, *more)]


def _row(case: Case, found: Found) -> tuple[object, ...]:
    cells = [found[case.name, form, stream] for form, stream in _MODES]
    return (case.name, *(cell for (cell, _), _ in cells), cells[0][0][1][:80])


def look(at: str) -> str:
    """A tool."""
    return f"seen: {at}"
