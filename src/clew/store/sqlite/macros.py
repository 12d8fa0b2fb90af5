"""Translation of the contract's SQL to SQLite's."""

from __future__ import annotations

import functools
import re

_MACROS = {
    # A number is never reused, as on PostgreSQL: the search index and cursors rely on it.
    "ID": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "BYTES": "BLOB",
    "LOCK": "",
    "SHARE": "",
    "SKIP": "",
}
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/   # left as they are
      | \$(?P<number>\d+) | @(?P<macro>\w+)""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = re.compile(r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)\b", re.IGNORECASE)


@functools.cache
def expand_macros(sql: str) -> str:
    """
    Return ``sql`` with its macros replaced and ``$1`` as ``?1``, which binds a plain tuple.

    :raises ValueError: for an unknown macro, or a statement that would end the transaction
    """
    if _CONTROL.match(sql):
        raise ValueError(f"a job cannot control its transaction: {sql!r}")
    return _TOKEN.sub(_replace_token, sql)


def _replace_token(token: re.Match[str]) -> str:
    if token["number"]:
        return "?" + token["number"]
    if token["macro"]:
        if token["macro"] not in _MACROS:
            raise ValueError(f"unknown macro @{token['macro']}")
        return _MACROS[token["macro"]]
    return token[0]
