"""Random updates of every platform through a gateway; ``make soak platform-updates`` has more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.updates.campaign import PLATFORMS, campaign

if TYPE_CHECKING:
    from pathlib import Path

#: Enough for each kind that every platform has once, in its order.
UPDATES = 60


@pytest.mark.parametrize("name", PLATFORMS)
async def test_every_update_becomes_a_turn_a_line_or_a_log_entry(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/clew.db"
    found = await campaign(name, url, tmp_path, updates=UPDATES, seed=1)
    assert found.wrong == []
    assert found.turns + found.logged == UPDATES
