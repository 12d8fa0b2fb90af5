"""A streamed response goes on after its gateway was killed between any two events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.killing.killed_responses import hear_under_kills

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stream_goes_on_behind_its_last_event_after_two_kills(
    tmp_path: Path, store_url: str
) -> None:
    heard = hear_under_kills(tmp_path, store_url, seed=6)
    assert heard.kills
    assert heard.wrong == []
