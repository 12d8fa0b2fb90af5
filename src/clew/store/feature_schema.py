"""Schema of a feature: its own numbered migrations, tables and checks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field
from importlib import resources
from typing import TYPE_CHECKING

from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.store.checks.check import Check
    from clew.store.contract import Dialect

#: ``0001_first``, ``0001_first.sql``, ``0001_first.sqlite.sql``.
_FILE_PATTERN = re.compile(r"(\d{4})_(\w+?)(?:\.(sqlite|postgres))?(?:\.sql)?")
_NAMED_TABLE = re.compile(
    r"\b(?:CREATE|ALTER|DROP)\s+TABLE\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(\w+)"
    r"|\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+\w+\s+ON\s+(\w+)"
    r"|\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)",
    re.IGNORECASE,
)
_CREATED_TABLE = re.compile(r"\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)


class FeatureMigration(Record):
    """One migration of a feature, for both databases."""

    feature: str
    number: int
    name: str
    sql: Mapping[Dialect, str]

    @property
    def sha256(self) -> str:
        both = "\0".join([self.sql["sqlite"], self.sql["postgres"]])
        return hashlib.sha256(both.encode()).hexdigest()


class FeatureSchema(Record):
    """The tables and migrations that a feature keeps in the store."""

    feature: str
    #: A package with ``NNNN_name[.sqlite|.postgres].sql`` files, or statements by such names.
    source: str | Mapping[str, str]
    #: By table: the column with the conversation with which its rows are deleted.
    of_conversation: Mapping[str, str] = field(default_factory=dict[str, str])
    #: By table: the columns with the route, and with the scope, of a chat, whose id may change.
    of_route: Mapping[str, str] = field(default_factory=dict[str, str])
    of_scope: Mapping[str, str] = field(default_factory=dict[str, str])
    checks: tuple[Check, ...] = ()

    def owns_table(self, table: str) -> bool:
        """Return whether a table has a name of this feature."""
        prefix = self.feature.replace("-", "_")
        return table == prefix or table.startswith(f"{prefix}_")

    def load_migrations(self) -> list[FeatureMigration]:
        """
        Return the migrations in order.

        :raises SettingsError: if they cannot be read, or touch the tables of others
        """
        found: dict[tuple[int, str], dict[Dialect, list[str]]] = {}
        for file, sql in self._read_files():
            match = _FILE_PATTERN.fullmatch(file)
            if match is None:
                raise self._error(f"{file!r} is not named NNNN_name.sql")
            parts = found.setdefault((int(match[1]), match[2]), {"sqlite": [], "postgres": []})
            for dialect, texts in parts.items():
                if match[3] in (None, dialect):
                    texts.append(sql)
        made = [
            FeatureMigration(
                feature=self.feature,
                number=number,
                name=name,
                sql={dialect: "\n".join(texts) for dialect, texts in parts.items()},
            )
            for (number, name), parts in sorted(found.items())
        ]
        self._check_tables(made)
        return made

    def _read_files(self) -> Iterator[tuple[str, str]]:
        if isinstance(self.source, Mapping):
            yield from self.source.items()
            return
        try:
            files = sorted(resources.files(self.source).iterdir(), key=lambda one: one.name)
            for file in files:
                if file.name.endswith(".sql"):
                    yield file.name, file.read_text(encoding="utf-8")
        except (ImportError, OSError) as error:
            raise self._error(f"{self.source} cannot be read: {error}") from error

    def _check_tables(self, migrations: list[FeatureMigration]) -> None:
        texts = [sql for one in migrations for sql in one.sql.values()]
        named = {
            name for sql in texts for match in _NAMED_TABLE.findall(sql) for name in match if name
        }
        if strange := sorted(name for name in named if not self.owns_table(name)):
            raise self._error(
                f"the table {strange[0]!r} is not its own: its tables are named "
                f"{self.feature.replace('-', '_')} or {self.feature.replace('-', '_')}_…"
            )
        created = {name for sql in texts for name in _CREATED_TABLE.findall(sql)}
        if missing := sorted(self.of_conversation.keys() - created):
            raise self._error(f"there is no table {missing[0]!r} of which rows could be deleted")
        if missing := sorted((self.of_route.keys() | self.of_scope.keys()) - created):
            raise self._error(f"there is no table {missing[0]!r} of which rows could be moved")

    def _error(self, what: str) -> SettingsError:
        return SettingsError(f"the migrations of the feature {self.feature!r}: {what}")
