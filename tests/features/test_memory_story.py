"""A story of some days: what people ask for reaches the model, and nothing of the others does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.features.memory_story import Story

if TYPE_CHECKING:
    from pathlib import Path


async def test_over_days_each_question_reaches_the_model_with_the_fact_of_its_person(
    tmp_path: Path, store_url: str
) -> None:
    """``make soak memory-story`` has 30 days and 60 questions."""
    end = await Story(seed=1, days=3, questions=6).play(tmp_path, store_url)
    assert (end.wrong, end.leaks) == ([], [])
    assert (end.questions, end.compactions) == (6, 1)
    assert min(end.corrections, end.forgotten) > 0
