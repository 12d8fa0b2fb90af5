"""Translation of the contract's SQL to a driver's: macros and parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Quoted text and comments stay as they are; so does ``@@``, an operator.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
      | \$(?P<number>\d+) | (?<!@)@(?P<macro>\w+)""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = re.compile(
    r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|PREPARE)\b", re.IGNORECASE
)


def rewrite_sql(sql: str, macros: Mapping[str, str], *, parameter: str) -> str:
    """
    Return ``sql`` with its macros replaced, and ``parameter`` in place of each ``$``.

    :raises ValueError: for an unknown macro, or a statement that would end the transaction
    """

    def replace_token(token: re.Match[str]) -> str:
        if token["number"]:
            return parameter + token["number"]
        if not token["macro"]:
            return token[0]
        if token["macro"] not in macros:
            raise ValueError(f"unknown macro @{token['macro']}")
        return macros[token["macro"]]

    if _CONTROL.match(sql):
        raise ValueError(f"a job cannot control its transaction: {sql!r}")
    return _TOKEN.sub(replace_token, sql)
