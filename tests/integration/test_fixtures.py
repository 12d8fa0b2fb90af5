"""The fixtures that every other test trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.databases import Databases


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


@pytest.mark.postgres
def test_a_store_that_is_used_again_holds_nothing_of_the_test_before(
    postgres_databases: Databases,
) -> None:
    with postgres_databases.migrated() as first, psycopg.connect(first) as connection:
        connection.execute("INSERT INTO setting (scope, name, value) VALUES ('', 'left', '')")
    with postgres_databases.migrated() as again, psycopg.connect(again) as connection:
        assert connection.execute("SELECT count(*) FROM setting").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM search_state").fetchone() == (1,)
        connection.execute("ALTER TABLE owner ADD COLUMN left_behind INTEGER")
    assert again == first
    with postgres_databases.migrated() as another:
        assert another != first


async def test_async_tests_run_without_a_mark(anyio_backend_name: str) -> None:
    assert anyio_backend_name == "asyncio"
