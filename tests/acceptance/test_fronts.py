"""Several fronts on one conversation, in a short form; `make soak fronts` kills 20 times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.fronts import kill_under_fronts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_browsers_a_terminal_and_a_chat_show_the_same_in_the_same_order_after_kills(
    tmp_path: Path,
) -> None:
    outcome = kill_under_fronts(tmp_path, "sqlite:///clew.db", seed=1, kills=2)
    assert outcome.wrong == []
    assert (outcome.kills, outcome.sent) == (2, 10)
