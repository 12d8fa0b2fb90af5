"""PostgreSQL store, for several gateways on several hosts."""

from __future__ import annotations

from clew.distribution import format_install_command
from clew.errors import StoreUnusable

try:
    from clew.store.postgres.limits import Limits
    from clew.store.postgres.store import PostgresStore, open_postgres
except ImportError as error:
    raise StoreUnusable(
        "PostgreSQL needs the optional driver psycopg with its library: "
        f"{format_install_command('postgres')} ({error})"
    ) from error

__all__ = ["Limits", "PostgresStore", "open_postgres"]
