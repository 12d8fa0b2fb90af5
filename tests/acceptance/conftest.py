"""Fixtures of the acceptance tests: the program with a separate home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.browser import opened_browser
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture
def clew(tmp_path: Path) -> Clew:
    """``clew`` with an empty home and the offline model."""
    return Clew(tmp_path / "home", {"CLEW_MODEL__NAME": "offline"})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def durable(request: pytest.FixtureRequest, clew: Clew) -> Clew:
    """The same, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return clew
    url: str = request.getfixturevalue("postgres_url")
    return clew.with_env({"CLEW_STORE__URL": url})


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """The system's Chromium, for the tests of one module."""
    with opened_browser() as opened:
        yield opened
