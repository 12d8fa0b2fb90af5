"""
Migrations of features, after those of the core, in the same transaction.

Their statements are kept in the store, for both databases, so that the tables of a feature
can be made again in a copy where its package is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, LiteralString, cast

from clew.errors import StoreUnusable
from clew.record import Record
from clew.store.copying.tables import list_tables, sql_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.store.contract import Dialect, Tx
    from clew.store.feature_schema import FeatureMigration, FeatureSchema

_KNOWS_FEATURES: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'feature_migration'",
    "postgres": """
        SELECT 1 FROM pg_tables
        WHERE schemaname = current_schema() AND tablename = 'feature_migration'
    """,
}
_STORED: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT sqlite FROM feature_migration ORDER BY feature, number",
    "postgres": "SELECT postgres FROM feature_migration ORDER BY feature, number",
}


class FeatureTable(Record):
    """A table of a feature, which may not be installed."""

    name: LiteralString
    feature: str
    key: tuple[LiteralString, ...]
    #: Holds the conversation with which its rows are deleted.
    conversation_column: LiteralString | None
    #: They hold the route, and the scope, of a chat, and change with its id.
    route_column: LiteralString | None
    scope_column: LiteralString | None


def migrate_features(t: Tx, schemas: Iterable[FeatureSchema]) -> list[str]:
    """
    Apply the pending migrations of the features; return their names.

    :raises StoreUnusable: if a newer version of a feature wrote its tables
    """
    done: list[str] = []
    for schema in schemas:
        due = _find_due(t, schema)
        for migration in due:
            _apply_migration(t, migration)
            done.append(f"{schema.feature}: {migration.name}")
        if due:
            _record_tables(t, schema)
    return done


def find_pending_feature_migrations(t: Tx, schemas: Iterable[FeatureSchema]) -> list[str]:
    """
    Return the names of what ``migrate_features`` would apply; writes nothing.

    :raises StoreUnusable: as ``migrate_features``
    """
    return [
        f"{schema.feature}: {migration.name}"
        for schema in schemas
        for migration in _find_due(t, schema)
    ]


def _find_due(t: Tx, schema: FeatureSchema) -> list[FeatureMigration]:
    known = schema.load_migrations()
    applied = t.fetch_map(
        "SELECT number, sha256 FROM feature_migration WHERE feature = $1", schema.feature
    )
    newest = max((migration.number for migration in known), default=0)
    if max(applied, default=0) > newest:
        raise StoreUnusable(
            f"the tables of the feature {schema.feature!r} were written by a newer version of it: "
            "upgrade it, or put it into features.disabled; nothing was changed"
        )
    for migration in known:
        if applied.get(migration.number, migration.sha256) != migration.sha256:
            raise StoreUnusable(
                f"the migration {migration.number} ({migration.name}) of the feature "
                f"{schema.feature!r} is not the one that made its tables: use the version that "
                "did; nothing was changed"
            )
    return [migration for migration in known if migration.number not in applied]


def _apply_migration(t: Tx, migration: FeatureMigration) -> None:
    if migration.sql[t.dialect].strip():
        t.execute(_trusted_sql(migration.sql[t.dialect]))
    t.execute(
        """
        INSERT INTO feature_migration (
            feature, number, name, sqlite, postgres, sha256, applied_at
        ) VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        migration.feature,
        migration.number,
        migration.name,
        migration.sql["sqlite"],
        migration.sql["postgres"],
        migration.sha256,
        t.now,
    )


def _record_tables(t: Tx, schema: FeatureSchema) -> None:
    t.execute("DELETE FROM feature_table WHERE feature = $1", schema.feature)
    for table in list_tables(t):
        if not schema.owns_table(table.name):
            continue
        if not table.key:
            raise StoreUnusable(
                f"the table {table.name} of the feature {schema.feature!r} has no primary key: "
                "its rows could not be copied; nothing was changed"
            )
        columns = (schema.of_conversation, schema.of_route, schema.of_scope)
        t.execute(
            """
            INSERT INTO feature_table (
                name, feature, key_columns, conversation_column, route_column, scope_column
            ) VALUES ($1, $2, $3, $4, $5, $6)
            """,
            table.name,
            schema.feature,
            ",".join(table.key),
            *(_name_column(one.get(table.name)) for one in columns),
        )


def _name_column(column: str | None) -> LiteralString | None:
    return None if column is None else sql_name(column)


def read_feature_statements(t: Tx, wanted: Dialect) -> Sequence[str]:
    """Return the statements that make the tables of all features in the wanted database."""
    if t.fetch_one(_KNOWS_FEATURES[t.dialect]) is None:
        return []
    return [sql for (sql,) in t.fetch_all(_STORED[wanted]) if sql.strip()]


def create_feature_tables(t: Tx, statements: Iterable[str]) -> None:
    """Make the tables of features, as the store that is copied has them."""
    for sql in statements:
        t.execute(_trusted_sql(sql))


def list_feature_tables(t: Tx) -> list[FeatureTable]:
    """Return the tables of all features, also of those that are not installed."""
    rows = t.fetch_all(
        """
        SELECT name, feature, key_columns, conversation_column, route_column, scope_column
        FROM feature_table ORDER BY name
        """
    )
    return [
        FeatureTable(
            name=sql_name(name),
            feature=feature,
            key=tuple([sql_name(column) for column in key.split(",")]),
            conversation_column=_name_column(conversation),
            route_column=_name_column(route),
            scope_column=_name_column(scope),
        )
        for name, feature, key, conversation, route, scope in rows
    ]


def has_feature_tables(t: Tx, feature: str) -> bool:
    """Return whether the store was opened with a feature, and has its tables."""
    return t.exists("SELECT 1 FROM feature_migration WHERE feature = $1 LIMIT 1", feature)


def delete_feature_rows(t: Tx, conversation: str, rows: int) -> bool:
    """Delete at most ``rows`` rows of a deleted conversation; ``False`` if none are left."""
    for table in list_feature_tables(t):
        if table.conversation_column is None:
            continue
        key: LiteralString = ", ".join(table.key)
        found = t.execute(
            f"DELETE FROM {table.name} WHERE ({key}) IN (SELECT {key} FROM {table.name} "
            f"WHERE {table.conversation_column} = $1 LIMIT $2)",
            conversation,
            rows,
        )
        if found:
            return True
    return False


def list_feature_routes(t: Tx) -> list[str]:
    """Return the routes that rows of features name."""
    found: list[str] = []
    for table in list_feature_tables(t):
        if (column := table.route_column) is not None:
            found += t.fetch_column(
                f"SELECT DISTINCT {column} FROM {table.name} WHERE {column} IS NOT NULL"
            )
    return found


def move_feature_rows(t: Tx, kind: Literal["route", "scope"], old: str, new: str) -> None:
    """Put another route, or another scope, in the place of one in the rows of features."""
    for table in list_feature_tables(t):
        column = table.route_column if kind == "route" else table.scope_column
        if column is not None:
            t.execute(f"UPDATE {table.name} SET {column} = $2 WHERE {column} = $1", old, new)


def _trusted_sql(told: str) -> LiteralString:
    # Written by a feature, which runs as the gateway itself.
    return cast("LiteralString", told)
