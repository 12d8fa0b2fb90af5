"""Two processes that compact one conversation, and one of them is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.killing.compactors import compacted_by_two

if TYPE_CHECKING:
    from pathlib import Path

#: Before and after the rotation; ``make soak two-compactors`` kills at more places.
PLACES = (
    None,
    "summary begins",
    "compactions.rotate_compacted_with_own_lease before",
    "compactions.rotate_compacted_with_own_lease after",
)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_s3_1_of_two_one_moves_the_session_and_no_summary_is_made_again_when_one_is_killed(
    store_url: str, tmp_path: Path
) -> None:
    pair = await compacted_by_two(store_url, tmp_path, PLACES)
    assert pair.complaints == []
    assert pair.rotations == len(PLACES)
    assert pair.kills == dict.fromkeys(PLACES[1:], 1)
