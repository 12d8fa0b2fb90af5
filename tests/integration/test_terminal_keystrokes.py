"""The small form of ``make soak keystrokes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tui.keystrokes import play

if TYPE_CHECKING:
    from pathlib import Path


async def test_whatever_is_typed_is_sent_once_and_nothing_is_decided_by_accident(
    tmp_path: Path,
) -> None:
    played = await play(tmp_path, keys=600, seed=1)
    assert played.sent == played.stored
    assert played.ran == played.allowed
    assert played.wrong == 0
    assert played.quiet_points > 1
    assert sum(played.sent.values()) > 1
