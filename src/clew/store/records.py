"""Queries whose columns become the arguments of a record, by name."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Generic, LiteralString, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.store.contract import Row, Tx, Value

T = TypeVar("T")

_COLUMNS = re.compile(r"\s*SELECT\s+(.+?)\s+FROM\b", re.DOTALL)


class RecordQuery(Generic[T]):
    """
    ``SELECT … FROM …`` whose columns are the keyword arguments of ``record``.

    ``convert`` has a function for each column that is stored in another type; NULL stays
    ``None``. The rest of the statement is given with each query.
    """

    def __init__(
        self,
        record: Callable[..., T],
        select: LiteralString,
        convert: Mapping[str, Callable[[Any], object]],
    ) -> None:
        """
        Compile the conversion of a row.

        :raises TypeError: if the columns are not the fields of a data class
        """
        self.select: LiteralString = select
        names = _column_names(select)
        _reject_other_fields(record, names)
        #: Return the record of one row.
        self.from_row: Callable[[Row], T] = _compile_conversion(record, names, convert)

    def fetch_one(self, t: Tx, rest: LiteralString, *args: Value) -> T | None:
        """Return the record of the first row, or ``None``."""
        row = t.fetch_one(f"{self.select} {rest}", *args)
        return None if row is None else self.from_row(row)

    def fetch_all(self, t: Tx, rest: LiteralString, *args: Value) -> list[T]:
        """Return the records of all rows."""
        from_row = self.from_row
        return [from_row(row) for row in t.fetch_all(f"{self.select} {rest}", *args)]


def _reject_other_fields(record: object, names: list[str]) -> None:
    if isinstance(record, type) and dataclasses.is_dataclass(record):
        fields = {field.name for field in dataclasses.fields(record)}
        if fields != {*names}:
            raise TypeError(f"the fields of {record.__name__} are {fields}, not {names}")


def _column_names(select: str) -> list[str]:
    """Return the name of each column: its alias, or what follows the name of its table."""
    found = _COLUMNS.match(select)
    if found is None:
        raise ValueError(f"no columns in {select!r}")
    return [column.split()[-1].rpartition(".")[2] for column in found[1].split(",")]


def _compile_conversion(
    record: Callable[..., T], names: list[str], convert: Mapping[str, Callable[[Any], object]]
) -> Callable[[Row], T]:
    # Generated, as data classes generate their methods: a loop over the columns takes half as
    # long again for each row.
    values = [
        f"{name}=None if (value := row[{place}]) is None else to_{name}(value)"
        if name in convert
        else f"{name}=row[{place}]"
        for place, name in enumerate(names)
    ]
    text = f"lambda row: record({', '.join(values)})"
    known = {f"to_{name}": function for name, function in convert.items()}
    return eval(text, {"record": record, **known})
