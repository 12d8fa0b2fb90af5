"""A failed opening says why and what to do, and never shows the password."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import subprocess
import sys
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import psycopg
import pytest

from clew.errors import StoreError, StoreUnavailable, StoreUnusable
from clew.store.postgres import Limits, open_postgres
from clew.store.postgres.dsn import Dsn
from clew.store.postgres.opening import inspect_server
from tests import postgres
from tests.integration.postgres_proxy import Pooler, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.postgres

BRIEF = Limits(retry_timeout=0.1)


async def failure(url: str) -> StoreError:
    """Return the error of opening; its log output does not contain the password."""
    with pytest.raises(StoreError) as caught:
        await open_postgres(url, limits=BRIEF)
    assert "sekret" not in "".join(traceback.format_exception(caught.value))
    return caught.value


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """A server that asks for passwords."""
    with postgres.home() as home:
        url = home.url()
        with psycopg.connect(f"{url}/postgres", autocommit=True) as admin:
            admin.execute("CREATE ROLE locked LOGIN PASSWORD 'open'")
            rules = home.data / "pg_hba.conf"
            rules.write_text(f"host all locked all scram-sha-256\n{rules.read_text()}")
            admin.execute("SELECT pg_reload_conf()")
        yield f"127.0.0.1:{urlsplit(url).port}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sek@sekret@host/db",
        "postgresql://me:sek/sekret@host/db",
        "postgresql://me:sek%zzsekret@host/db",
        "postgresql://me:1/sekret@host/db",
        "postgresql://me:sekret@host/db?nonsense=1",
        "mysql://me:sekret@host/db",
    ],
)
async def test_an_unreadable_url_says_how_to_write_it(url: str) -> None:
    error = await failure(url)
    assert isinstance(error, StoreUnusable)
    assert "%XX" in str(error)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:sekret@{}/postgres", ["me", "create the user"]),
        ("postgresql://locked:sekret@{}/postgres", ["password", "check user and password"]),
        ("postgresql://locked:open@{}/none", ["none", "create the database"]),
        ("postgresql://postgres:sekret@host.invalid/db", ["host.invalid", "check the host"]),
        ("postgresql://postgres:sekret@{}/postgres?sslmode=require", ["SSL", "options"]),
        ("postgresql://postgres:sekret@{}/postgres?connect_timeout=soon", ["soon", "options"]),
    ],
)
async def test_a_database_that_cannot_open_says_what_to_do(
    locked: str, url: str, words: list[str]
) -> None:
    error = await failure(url.format(locked))
    assert isinstance(error, StoreUnusable)
    assert [word for word in words if word not in str(error)] == []


async def test_a_password_that_is_right_opens(locked: str) -> None:
    async with await open_postgres(f"postgresql://locked:open@{locked}/postgres") as store:
        await store.check_available()


async def test_a_port_without_a_listener_is_temporarily_unavailable() -> None:
    error = await failure("postgresql://me:sekret@127.0.0.1:1/db")
    assert isinstance(error, StoreUnavailable)
    assert "127.0.0.1" in str(error)


async def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: str) -> None:
    admin_url = f"{postgres_server}/postgres"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE narrow ENCODING 'SQL_ASCII' TEMPLATE template0")
        try:
            error = await failure(f"{postgres_server}/narrow")
        finally:
            admin.execute("DROP DATABASE narrow WITH (FORCE)")
    assert isinstance(error, StoreUnusable)
    assert "UTF8" in str(error)


async def test_a_pooler_that_shares_backends_between_clients_is_refused(postgres_url: str) -> None:
    async with listening(Pooler(postgres_url).handle, postgres_url) as pooled:
        error = await failure(pooled)
    assert isinstance(error, StoreUnusable)
    assert "pooler in transaction mode" in str(error)


def test_an_old_server_is_refused() -> None:
    old = SimpleNamespace(info=SimpleNamespace(server_version=120022))
    with pytest.raises(StoreUnusable, match="version 12; Clew needs 13"):
        inspect_server(cast("Any", old), Dsn("postgresql://host/db"))


def test_a_missing_driver_names_the_extra() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import clew.store.postgres"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreUnusable" in done.stderr
    assert "pip install 'clew-gateway[postgres]'" in done.stderr


def test_an_address_shows_neither_user_nor_password() -> None:
    assert repr(Dsn("postgresql://me:sekret@host:1/db")) == "<Address host:1/db>"
