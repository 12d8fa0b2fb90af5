"""
Databases for tests: migrated once, and copied or emptied for each test.

To make a database and to migrate it costs more than most tests do. One that a test left in another
shape, or large, is dropped.
"""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from clew.store.opening import open_store
from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Generator

#: The database of a test that need not run on both, for ``parametrize(…, indirect=True)``: what is
#: stored is the same on the two, as the contract of the store shows.
ON_POSTGRES = [pytest.param("postgres", marks=pytest.mark.postgres)]
#: Bytes of a database that is emptied row by row; above, a new one is cheaper.
LARGEST = 1 << 20

SHAPE = """
SELECT md5(string_agg(thing, ',' ORDER BY thing)) FROM (
    SELECT concat_ws(' ', relkind, relname) AS thing FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL
    SELECT concat_ws(' ', 'column', relname, attname, atttypid, attnotnull, attisdropped)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
  UNION ALL
    SELECT concat_ws(' ', 'trigger', tgname, tgenabled) FROM pg_trigger
    WHERE NOT tgisinternal
  UNION ALL
    SELECT concat_ws(' ', 'constraint', conname, convalidated) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL
    SELECT concat_ws(' ', 'settings', setrole, setconfig) FROM pg_db_role_setting
    JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database()
) AS things
"""
#: What a migrated store begins with is in the schema ``kept``. Functions of the database, because a
#: statement per table costs more than most tests.
KEEP = """
CREATE SCHEMA kept;
CREATE TABLE kept.names AS SELECT relname AS name FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;

CREATE FUNCTION kept.keep() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text; has bool;
BEGIN
  FOR name IN SELECT names.name FROM kept.names LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO has;
    IF has THEN
      EXECUTE format('CREATE TABLE kept.%I AS TABLE public.%I', 'of_' || name, name);
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION kept.drop_others() RETURNS void LANGUAGE plpgsql AS $$
DECLARE names text;
BEGIN
  SELECT string_agg(oid::regclass::text, ', ') FROM pg_class INTO names
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname NOT IN (SELECT name FROM kept.names);
  IF names IS NOT NULL THEN EXECUTE 'DROP TABLE ' || names || ' CASCADE'; END IF;
END $$;

CREATE FUNCTION kept.empty() RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  -- Neither triggers nor foreign keys: the order does not matter.
  SET LOCAL session_replication_role = replica;
  FOR name IN SELECT relname FROM pg_class WHERE relkind = 'r'
    AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
  LOOP EXECUTE format('DELETE FROM public.%I', name); END LOOP;
  FOR name IN SELECT names.name FROM kept.names
    WHERE to_regclass('kept.' || quote_ident('of_' || names.name)) IS NOT NULL
  LOOP
    EXECUTE format('INSERT INTO public.%I SELECT * FROM kept.%I', name, 'of_' || name);
  END LOOP;
  PERFORM setval(oid::regclass, 1, false) FROM pg_class
  WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace;
END $$;

SELECT kept.keep();
"""
LARGEST_TABLE = """
SELECT max(pg_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Databases:
    """The databases of one test worker on its run's server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._free: list[tuple[str, ExitStack]] = []
        self._shape = ""

    @contextmanager
    def migrated(self) -> Generator[str]:
        """The URL of a store that holds nothing yet."""
        url, dropping = self._free.pop() if self._free else self._new()
        try:
            yield url
        finally:
            if self._emptied(url):
                self._free.append((url, dropping))
            else:
                dropping.close()

    def _new(self) -> tuple[str, ExitStack]:
        dropping = ExitStack()
        url = dropping.enter_context(postgres.database(self._server))
        _migrate(url)
        with psycopg.connect(url) as connection:
            self._shape = _shape(connection)
            connection.execute(KEEP)
        return url, dropping

    def _emptied(self, url: str) -> bool:
        with psycopg.connect(url) as connection:
            connection.execute(OTHERS)
            # Those of features: to make them again costs less than a whole database.
            connection.execute("SELECT kept.drop_others()")
            (largest,) = connection.execute(LARGEST_TABLE).fetchone() or (0,)
            if largest > LARGEST or _shape(connection) != self._shape:
                return False
            connection.execute("SELECT kept.empty()")
        return True


def make_migrated_file(folder: Path) -> Path:
    """Return the file of a SQLite store that holds nothing yet."""
    file = folder / "clew.db"
    _migrate(f"sqlite:///{file}")
    return file


def _migrate(url: str) -> None:
    # In a thread: the event loop of the tests is not this one's to touch.
    with ThreadPoolExecutor(1) as one:
        one.submit(asyncio.run, _open_once(url)).result()


async def _open_once(url: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        async with await open_store(url, home=Path(home)):
            pass


def _shape(connection: psycopg.Connection) -> str:
    (shape,) = connection.execute(SHAPE).fetchone() or ("",)
    return str(shape)
