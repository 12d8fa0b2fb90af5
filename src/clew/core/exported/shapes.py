"""
What the lines of an export hold: the fields of each type, as written and as stored.

A *record* has the values of the store's columns: times in milliseconds, hashes as bytes, JSON as
the text that was stored, since that text is what was hashed. A line has times as text, hashes in
hex and JSON as JSON, where that gives the same text again.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from clew.clock import from_millis, to_millis
from clew.core.base import Range
from clew.core.conversation import TitledBy
from clew.core.entry import EntryKind, Role
from clew.core.exported.lines import Unreadable, as_json, from_json
from clew.core.imported import was_finalized
from clew.core.text import storable
from clew.core.turn import Outcome, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.core.base import BaseItem

Record: TypeAlias = dict[str, Any]

#: Holds a JSON text that would not be the same if it were written as JSON.
AS_TEXT: Final = "$text"
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Kind(Enum):
    ID = "an id"
    #: What people, models and tools said: the only kind from which secrets are taken out.
    TEXT = "text"
    JSON = "JSON"
    #: JSON that holds no words of anybody.
    LIST = "a list"
    INT = "a number"
    FLAG = "true or false"
    TIME = "a time such as 2026-01-31T12:00:00.000Z"
    HASH = "a sha256 in hex"
    BYTES = "base64"


CONTENT: Final = frozenset({Kind.TEXT, Kind.JSON})


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    name: str
    kind: Kind
    optional: bool = False
    #: The only values, where there are few.
    values: frozenset[str] | None = None


def _fields(**kinds: Kind | type[Enum]) -> tuple[Field, ...]:
    """Fields by name; a name that ends in ``_or_null`` may have no value."""
    return tuple(_field(name, kind) for name, kind in kinds.items())


def _field(name: str, kind: Kind | type[Enum]) -> Field:
    optional = name.endswith("_or_null")
    name = name.removesuffix("_or_null")
    if isinstance(kind, Kind):
        return Field(name=name, kind=kind, optional=optional)
    values = frozenset(str(one.value) for one in kind)
    return Field(name=name, kind=Kind.ID, optional=optional, values=values)


# In the order of the columns that the store's queries name.
CONVERSATION: Final = _fields(
    id=Kind.ID,
    scope=Kind.ID,
    title_or_null=Kind.TEXT,
    titled_by_or_null=TitledBy,
    adhoc=Kind.FLAG,
    origin_or_null=Kind.ID,
    origin_seq_or_null=Kind.INT,
    created_at=Kind.TIME,
    entries=Kind.INT,
    head=Kind.ID,
    pending_title_or_null=Kind.TEXT,
    settings=Kind.JSON,
    routes=Kind.JSON,
)
SESSION: Final = _fields(
    conversation=Kind.ID,
    id=Kind.ID,
    predecessor_or_null=Kind.ID,
    opened_at=Kind.TIME,
    opened_by=Kind.ID,
    opened_seq=Kind.INT,
    operation=Kind.ID,
    instructions_or_null=Kind.TEXT,
    ended_at_or_null=Kind.TIME,
    end_reason_or_null=Kind.ID,
)
RANGE: Final = _fields(first=Kind.INT, last=Kind.INT)
LITERAL: Final = _fields(format=Kind.ID, message=Kind.JSON)
TURN: Final = _fields(
    conversation=Kind.ID,
    id=Kind.ID,
    first_seq=Kind.INT,
    outcome_or_null=Outcome,
    error_or_null=Kind.TEXT,
    error_code_or_null=Kind.ID,
    stop_or_null=Stop,
    steps=Kind.INT,
    resumes=Kind.INT,
    retries=Kind.JSON,
    model_or_null=Kind.TEXT,
    started_at=Kind.TIME,
    finished_at_or_null=Kind.TIME,
)
INPUT: Final = _fields(
    conversation=Kind.ID,
    id=Kind.ID,
    route_or_null=Kind.TEXT,
    kind=Kind.ID,
    text=Kind.TEXT,
    payload=Kind.JSON,
    double_text=Kind.ID,
    received_at=Kind.TIME,
    due_at=Kind.TIME,
    outcome=Kind.ID,
    turn_or_null=Kind.ID,
    step_or_null=Kind.INT,
    note_or_null=Kind.TEXT,
    resolved_at=Kind.TIME,
    expiry_finalized=Kind.FLAG,
)
ENTRY: Final = _fields(
    conversation=Kind.ID,
    seq=Kind.INT,
    id=Kind.ID,
    session=Kind.ID,
    turn_or_null=Kind.ID,
    kind=EntryKind,
    role_or_null=Role,
    text=Kind.TEXT,
    calls=Kind.LIST,
    answers=Kind.LIST,
    format=Kind.ID,
    message=Kind.JSON,
    created_at=Kind.TIME,
    prev_hash=Kind.HASH,
    hash=Kind.HASH,
)
USAGE: Final = _fields(
    conversation=Kind.ID,
    id=Kind.ID,
    turn_or_null=Kind.ID,
    step_or_null=Kind.INT,
    purpose=Kind.ID,
    model=Kind.TEXT,
    input_tokens=Kind.INT,
    cached_tokens=Kind.INT,
    output_tokens=Kind.INT,
    cost_micros_or_null=Kind.INT,
    created_at=Kind.TIME,
)
BLOB: Final = _fields(conversation=Kind.ID, sha256=Kind.HASH, media_type=Kind.ID, data=Kind.BYTES)
ATTACHMENT: Final = _fields(
    conversation=Kind.ID,
    id=Kind.ID,
    input_or_null=Kind.ID,
    seq_or_null=Kind.INT,
    sha256=Kind.HASH,
    name=Kind.TEXT,
    media_type=Kind.ID,
)
END: Final = _fields(
    conversation=Kind.ID,
    entries=Kind.INT,
    sessions=Kind.INT,
    turns=Kind.INT,
    inputs=Kind.INT,
    last_hash=Kind.HASH,
)
TOMBSTONE: Final = _fields(
    conversation=Kind.ID, last_seq=Kind.INT, last_hash=Kind.HASH, deleted_at=Kind.TIME
)

#: The fields of each type of line that stands for something stored.
SHAPES: Final[Mapping[str, tuple[Field, ...]]] = {
    "conversation": CONVERSATION,
    "session": SESSION,
    "turn": TURN,
    "input": INPUT,
    "entry": ENTRY,
    "usage": USAGE,
    "blob": BLOB,
    "attachment": ATTACHMENT,
    "end": END,
    "tombstone": TOMBSTONE,
}


def line_of(kind: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of any type as its line says it."""
    line = to_line(SHAPES[kind], record)
    if kind == "session":
        line["base"] = [to_line(_of_item(item), item) for item in record["base"]]
    return line


def record_of(kind: str, said: Mapping[str, Any]) -> Record:
    """
    What a line of any type says as a record.

    :raises Unreadable: if a field is missing or is not what it has to be
    """
    if kind == "input":
        said = {**said, "expiry_finalized": was_finalized(said)}
    record = to_record(SHAPES[kind], said)
    if kind == "session":
        base = said.get("base")
        if not isinstance(base, list):
            raise Unreadable("its 'base' is not a list")
        record["base"] = [_item(item) for item in cast("list[Any]", base)]
    return record


def _item(said: Any) -> Record:
    if not isinstance(said, dict):
        raise Unreadable("its 'base' is not a list of objects")
    item = cast("Record", said)
    return to_record(_of_item(item), item)


def _of_item(item: Mapping[str, Any]) -> tuple[Field, ...]:
    return LITERAL if "message" in item else RANGE


def to_line(fields: tuple[Field, ...], record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as its line says it."""
    return {
        field.name: None if (value := record[field.name]) is None else _WRITERS[field.kind](value)
        for field in fields
    }


def to_record(fields: tuple[Field, ...], said: Mapping[str, Any]) -> Record:
    """
    What a line says as a record; what else it says is left out.

    :raises Unreadable: if a field is missing or is not what it has to be
    """
    return {field.name: _value(field, said) for field in fields}


def _value(field: Field, said: Mapping[str, Any]) -> Any:
    value = said.get(field.name)
    if value is None and field.optional:
        return None
    try:
        read = _READERS[field.kind](value)
    except (ValueError, TypeError, OverflowError):
        read = None
    if read is None or (field.values is not None and read not in field.values):
        raise Unreadable(f"its {field.name!r} is not {field.kind.value}")
    return read


def base_item(item: BaseItem) -> Record:
    """One item of a session's base as a record."""
    if isinstance(item, Range):
        return {"first": item.first, "last": item.last}
    return {"format": item.format, "message": item.message}


def row_to_record(fields: tuple[Field, ...], row: tuple[Any, ...]) -> Record:
    """A row of the store, with a column for each field in this order, as a record."""
    return {field.name: value for field, value in zip(fields, row, strict=True)}


def json_value(text: str) -> Any:
    """JSON as it stands in a line: as itself, or as text where it would not stay the same."""
    try:
        value = from_json(text)
        same = as_json(value) == text and not _is_wrapped(value)
    except (Unreadable, RecursionError):
        return {AS_TEXT: text}
    return value if same else {AS_TEXT: text}


def _is_wrapped(value: object) -> bool:
    return isinstance(value, dict) and list(cast("dict[str, object]", value)) == [AS_TEXT]


def json_text(value: Any) -> str:
    """The text that ``json_value`` was given."""
    if not _is_wrapped(value):
        return _text(as_json(value))
    return _text(value[AS_TEXT])


def _moment(millis: int) -> str:
    return from_millis(millis).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _millis(value: str) -> int:
    if not _MOMENT.fullmatch(value):
        raise ValueError(value)
    return to_millis(datetime.fromisoformat(value))


def _text(value: Any) -> str:
    if not isinstance(value, str) or storable(value) != value:
        raise ValueError
    return value


def _id(value: Any) -> str:
    if not _text(value):
        raise ValueError
    return value


def _int(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _flag(value: Any) -> int:
    if not isinstance(value, bool):
        raise TypeError
    return int(value)


def _hash(value: Any) -> bytes:
    read = bytes.fromhex(value)
    if len(read) != 32 or read.hex() != value:
        raise ValueError
    return read


def _same(value: Any) -> Any:
    return value


_WRITERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.ID: _same,
    Kind.TEXT: _same,
    Kind.JSON: json_value,
    Kind.LIST: json_value,
    Kind.INT: int,
    Kind.FLAG: bool,
    Kind.TIME: _moment,
    Kind.HASH: lambda value: bytes(value).hex(),
    Kind.BYTES: lambda value: base64.b64encode(bytes(value)).decode(),
}
_READERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.ID: _id,
    Kind.TEXT: _text,
    Kind.JSON: json_text,
    Kind.LIST: json_text,
    Kind.INT: _int,
    Kind.FLAG: _flag,
    Kind.TIME: _millis,
    Kind.HASH: _hash,
    Kind.BYTES: lambda value: base64.b64decode(value, validate=True),
}
