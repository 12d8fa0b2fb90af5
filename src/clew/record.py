"""
Immutable values that are compared and shown by their fields.

``msgspec`` makes them in C: a class costs a fortieth of what a frozen data class costs at import,
and each record a third. ``dataclasses.fields``, ``replace`` and ``asdict`` take records as well.
"""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import MISSING, Field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast, dataclass_transform

import msgspec
from msgspec import Struct, StructMeta
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Record", "RecordType", "replace"]


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field, Field)
)
class RecordType(StructMeta):
    """Type of every class of records: frozen, its arguments by name unless ``kw_only=False``."""

    #: The defaults and fields that a class and its bases declare, by name.
    __declared__: dict[str, object]

    def __new__(  # noqa: PYI034  (``Self`` has no meaning in a type of types)
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        kw_only: bool = True,
        **options: Any,
    ) -> RecordType:
        """
        Create a class from its annotations and defaults.

        :param options: others of ``msgspec.Struct``, such as ``eq`` and ``dict``
        """
        annotations = namespace.get("__annotations__", ())
        declared = {field: namespace[field] for field in annotations if field in namespace}
        fields = cast(
            "dict[str, Field[Any]]",
            {one: each for one, each in declared.items() if isinstance(each, Field)},
        )
        for one, each in fields.items():
            _declare(namespace, one, each)
        if not all(each.repr for each in fields.values()):
            namespace.setdefault("__repr__", _show)
        if not all(each.compare for each in fields.values()):
            namespace |= {"__eq__": _equals, "__hash__": _hash}
        made = super().__new__(mcs, name, bases, namespace, frozen=True, kw_only=kw_only, **options)
        made.__declared__ = {**getattr(made, "__declared__", {}), **declared}
        return made


def _declare(namespace: dict[str, Any], name: str, field: Field[Any]) -> None:
    if not field.init:
        raise TypeError(
            f"{namespace['__qualname__']}.{name}: records have no field without argument"
        )
    if field.default_factory is not MISSING:
        namespace[name] = msgspec.field(default_factory=field.default_factory)
    elif field.default is not MISSING:
        namespace[name] = field.default
    else:
        del namespace[name]


class _DataClassFields:
    """The fields as ``dataclasses`` reads them."""

    def __get__(self, _: object, kind: RecordType) -> Mapping[str, Field[Any]]:
        return _make_fields(kind)


@cache
def _make_fields(kind: RecordType) -> Mapping[str, Field[Any]]:
    types: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        types.update(inspect.get_annotations(base))
    declared = kind.__declared__
    return {name: _make_field(name, types[name], declared) for name in kind.__struct_fields__}


@dataclasses.dataclass
class _Example:
    field: object


def _make_field(name: str, type_: Any, declared: Mapping[str, object]) -> Field[Any]:
    found: Any = declared.get(name, MISSING)
    made = cast("Any", found if isinstance(found, Field) else dataclasses.field(default=found))
    made.name, made.type = name, type_
    # What tells ``dataclasses`` a field from a class variable has no public name.
    made._field_type = cast("Any", dataclasses.fields(_Example)[0])._field_type  # noqa: SLF001
    return made


def _show(record: Record) -> str:
    shown = [
        f"{one.name}={getattr(record, one.name)!r}"
        for one in dataclasses.fields(record)
        if one.repr
    ]
    return f"{type(record).__qualname__}({', '.join(shown)})"


def _get_compared(record: Record) -> tuple[object, ...]:
    return tuple(getattr(record, one.name) for one in dataclasses.fields(record) if one.compare)


def _equals(record: Record, other: object) -> bool:
    if type(other) is not type(record):
        return NotImplemented
    return _get_compared(record) == _get_compared(other)


def _hash(record: Record) -> int:
    return hash(_get_compared(record))


class Record(Struct, metaclass=RecordType):
    """
    Base of records.

    Subclasses declare their fields as data classes do::

        class Point(Record):
            x: int
            y: int = 0
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = cast("Any", _DataClassFields())
