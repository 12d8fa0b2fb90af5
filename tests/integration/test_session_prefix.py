"""All requests of a session begin alike, whatever changes around it, and are made again exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from tests.prefix_story import tell_story

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.mark.both_databases
async def test_restarts_changed_tools_and_rendered_instructions_leave_the_prefix_as_it_was(
    tmp_path: Path, store_url: str
) -> None:
    told = await tell_story(tmp_path, store_url, turns=20, restarts=(7, 14), changes=(5, 10, 15))
    assert len(told.requests) >= 40
    assert (told.broken_prefixes, told.differing) == ([], [])
    first = told.requests[0].json or {}
    said = [m["content"] for m in first["messages"] if m["role"] == "system"]
    assert [text.rstrip("0123456789.") for text in "\n\n".join(said).split("\n\n")] == [
        "You have senses",
        "Rendered as number ",
        "The senses are as of ",
        "Feature of local, ",
        "Plain, ",
    ]
    changed = [text for text in told.results if "has changed" in text]
    assert len(changed) == 8
    assert "lens: Field required" in changed[0]
    gone = [text for text in told.results if "not available any more" in text]
    assert len(gone) == 6
