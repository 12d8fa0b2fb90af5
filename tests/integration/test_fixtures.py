"""The fixtures that every other test trusts."""

from __future__ import annotations

import psycopg
import pytest


@pytest.mark.postgres
def test_a_postgres_database_is_fresh_and_empty(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_stat_user_tables").fetchone()
        connection.execute("CREATE TABLE left_behind (id INTEGER)")
    assert tables == (0,)


@pytest.mark.postgres
def test_many_connections_fit(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SHOW max_connections").fetchone() == ("200",)


def test_a_store_url_names_its_database(store_url: str) -> None:
    scheme, _, rest = store_url.partition("://")
    assert scheme in {"sqlite", "postgresql"}
    assert rest.rpartition("/")[2].startswith("clew")


async def test_async_tests_run_without_a_mark(anyio_backend_name: str) -> None:
    assert anyio_backend_name == "asyncio"
