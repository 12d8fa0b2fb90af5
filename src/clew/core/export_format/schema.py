"""
Schema of an export: the fields of each line type, as written and as stored.

A *record* has the values of the store's columns: times in milliseconds, hashes as bytes,
JSON as the stored text, since that text was hashed. A line has times as text, hashes in hex
and JSON as JSON, where that reproduces the same text.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from clew.clock import from_millis, to_millis
from clew.core.conversation import TitledBy
from clew.core.entry import EntryKind, Role
from clew.core.export_format.sealed_lines import MalformedLine, decode_json, encode_json
from clew.core.foreign_formats import is_expiry_finalized
from clew.core.session_base import EntryRange
from clew.core.text import sanitize_text
from clew.core.turn import StopRequest, TurnOutcome
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.core.session_base import BaseItem

ExportRecord: TypeAlias = dict[str, Any]

#: Key for a JSON text that would change if it were embedded as JSON.
TEXT_KEY: Final = "$text"
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class FieldType(Enum):
    ID = "an id"
    #: Text of people, models and tools: redacted, like ``JSON``.
    TEXT = "text"
    JSON = "JSON"
    #: JSON without text of people, models or tools.
    LIST = "a list"
    INT = "a number"
    FLAG = "true or false"
    TIME = "a time such as 2026-01-31T12:00:00.000Z"
    HASH = "a sha256 in hex"
    BYTES = "base64"


CONTENT_TYPES: Final = frozenset({FieldType.TEXT, FieldType.JSON})


class Field(Record):
    name: str
    kind: FieldType
    optional: bool = False
    #: The allowed values, if limited.
    values: frozenset[str] | None = None


def _define_fields(**kinds: FieldType | type[Enum]) -> tuple[Field, ...]:
    """Return fields by name; a name that ends in ``_or_null`` is optional."""
    return tuple(_define_field(name, kind) for name, kind in kinds.items())


def _define_field(name: str, kind: FieldType | type[Enum]) -> Field:
    optional = name.endswith("_or_null")
    name = name.removesuffix("_or_null")
    if isinstance(kind, FieldType):
        return Field(name=name, kind=kind, optional=optional)
    values = frozenset(str(one.value) for one in kind)
    return Field(name=name, kind=FieldType.ID, optional=optional, values=values)


# In the order of the columns that the store's queries name.
CONVERSATION: Final = _define_fields(
    id=FieldType.ID,
    scope=FieldType.ID,
    title_or_null=FieldType.TEXT,
    titled_by_or_null=TitledBy,
    adhoc=FieldType.FLAG,
    origin_or_null=FieldType.ID,
    origin_seq_or_null=FieldType.INT,
    created_at=FieldType.TIME,
    entries=FieldType.INT,
    head=FieldType.ID,
    pending_title_or_null=FieldType.TEXT,
    settings=FieldType.JSON,
    routes=FieldType.JSON,
)
SESSION: Final = _define_fields(
    conversation=FieldType.ID,
    id=FieldType.ID,
    predecessor_or_null=FieldType.ID,
    opened_at=FieldType.TIME,
    opened_by=FieldType.ID,
    opened_seq=FieldType.INT,
    operation=FieldType.ID,
    instructions_or_null=FieldType.TEXT,
    ended_at_or_null=FieldType.TIME,
    end_reason_or_null=FieldType.ID,
)
RANGE: Final = _define_fields(first=FieldType.INT, last=FieldType.INT)
LITERAL: Final = _define_fields(format=FieldType.ID, message=FieldType.JSON)
TURN: Final = _define_fields(
    conversation=FieldType.ID,
    id=FieldType.ID,
    first_seq=FieldType.INT,
    outcome_or_null=TurnOutcome,
    error_or_null=FieldType.TEXT,
    error_code_or_null=FieldType.ID,
    stop_or_null=StopRequest,
    steps=FieldType.INT,
    resumes=FieldType.INT,
    retries=FieldType.JSON,
    model_or_null=FieldType.TEXT,
    started_at=FieldType.TIME,
    finished_at_or_null=FieldType.TIME,
)
INPUT: Final = _define_fields(
    conversation=FieldType.ID,
    id=FieldType.ID,
    route_or_null=FieldType.TEXT,
    kind=FieldType.ID,
    text=FieldType.TEXT,
    payload=FieldType.JSON,
    double_text=FieldType.ID,
    received_at=FieldType.TIME,
    due_at=FieldType.TIME,
    outcome=FieldType.ID,
    turn_or_null=FieldType.ID,
    step_or_null=FieldType.INT,
    note_or_null=FieldType.TEXT,
    resolved_at=FieldType.TIME,
    expiry_finalized=FieldType.FLAG,
)
ENTRY: Final = _define_fields(
    conversation=FieldType.ID,
    seq=FieldType.INT,
    id=FieldType.ID,
    session=FieldType.ID,
    turn_or_null=FieldType.ID,
    kind=EntryKind,
    role_or_null=Role,
    text=FieldType.TEXT,
    calls=FieldType.LIST,
    answers=FieldType.LIST,
    format=FieldType.ID,
    message=FieldType.JSON,
    created_at=FieldType.TIME,
    prev_hash=FieldType.HASH,
    hash=FieldType.HASH,
)
USAGE: Final = _define_fields(
    conversation=FieldType.ID,
    id=FieldType.ID,
    turn_or_null=FieldType.ID,
    step_or_null=FieldType.INT,
    purpose=FieldType.ID,
    model=FieldType.TEXT,
    input_tokens=FieldType.INT,
    cached_tokens=FieldType.INT,
    output_tokens=FieldType.INT,
    cost_micros_or_null=FieldType.INT,
    created_at=FieldType.TIME,
)
BLOB: Final = _define_fields(
    conversation=FieldType.ID, sha256=FieldType.HASH, media_type=FieldType.ID, data=FieldType.BYTES
)
ATTACHMENT: Final = _define_fields(
    conversation=FieldType.ID,
    id=FieldType.ID,
    input_or_null=FieldType.ID,
    seq_or_null=FieldType.INT,
    sha256=FieldType.HASH,
    name=FieldType.TEXT,
    media_type=FieldType.ID,
)
END: Final = _define_fields(
    conversation=FieldType.ID,
    entries=FieldType.INT,
    sessions=FieldType.INT,
    turns=FieldType.INT,
    inputs=FieldType.INT,
    last_hash=FieldType.HASH,
)
TOMBSTONE: Final = _define_fields(
    conversation=FieldType.ID,
    last_seq=FieldType.INT,
    last_hash=FieldType.HASH,
    deleted_at=FieldType.TIME,
)

#: The fields of each line type that represents a stored record.
LINE_FIELDS: Final[Mapping[str, tuple[Field, ...]]] = {
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


def encode_line(kind: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of any type as its line."""
    line = encode_fields(LINE_FIELDS[kind], record)
    if kind == "session":
        line["base"] = [encode_fields(_base_item_fields(item), item) for item in record["base"]]
    return line


def decode_line(kind: str, said: Mapping[str, Any]) -> ExportRecord:
    """
    Return a line of any type as a record.

    :raises MalformedLine: if a field is missing or invalid
    """
    if kind == "input":
        said = {**said, "expiry_finalized": is_expiry_finalized(said)}
    record = decode_fields(LINE_FIELDS[kind], said)
    if kind == "session":
        base = said.get("base")
        if not isinstance(base, list):
            raise MalformedLine("its 'base' is not a list")
        record["base"] = [_decode_base_item(item) for item in cast("list[Any]", base)]
    return record


def _decode_base_item(said: Any) -> ExportRecord:
    if not isinstance(said, dict):
        raise MalformedLine("its 'base' is not a list of objects")
    item = cast("ExportRecord", said)
    return decode_fields(_base_item_fields(item), item)


def _base_item_fields(item: Mapping[str, Any]) -> tuple[Field, ...]:
    return LITERAL if "message" in item else RANGE


def encode_fields(fields: tuple[Field, ...], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as its line."""
    return {
        field.name: None if (value := record[field.name]) is None else _WRITERS[field.kind](value)
        for field in fields
    }


def decode_fields(fields: tuple[Field, ...], said: Mapping[str, Any]) -> ExportRecord:
    """
    Return a line as a record; unknown fields are dropped.

    :raises MalformedLine: if a field is missing or invalid
    """
    return {field.name: _decode_value(field, said) for field in fields}


def _decode_value(field: Field, said: Mapping[str, Any]) -> Any:
    value = said.get(field.name)
    if value is None and field.optional:
        return None
    try:
        read = _READERS[field.kind](value)
    except (ValueError, TypeError, OverflowError):
        read = None
    if read is None or (field.values is not None and read not in field.values):
        raise MalformedLine(f"its {field.name!r} is not {field.kind.value}")
    return read


def encode_base_item(item: BaseItem) -> ExportRecord:
    """Return one item of a session's base as a record."""
    if isinstance(item, EntryRange):
        return {"first": item.first, "last": item.last}
    return {"format": item.format, "message": item.message}


def row_to_record(fields: tuple[Field, ...], row: tuple[Any, ...]) -> ExportRecord:
    """Return a row of the store, with a column for each field in order, as a record."""
    return {field.name: value for field, value in zip(fields, row, strict=True)}


def embed_json(text: str) -> Any:
    """Return JSON for a line: as a value, or as text if that would change it."""
    try:
        value = decode_json(text)
        same = encode_json(value) == text and not _is_wrapped_text(value)
    except (MalformedLine, RecursionError):
        return {TEXT_KEY: text}
    return value if same else {TEXT_KEY: text}


def _is_wrapped_text(value: object) -> bool:
    return isinstance(value, dict) and list(cast("dict[str, object]", value)) == [TEXT_KEY]


def extract_json(value: Any) -> str:
    """Return the text that ``embed_json`` was given."""
    if not _is_wrapped_text(value):
        return _check_text(encode_json(value))
    return _check_text(value[TEXT_KEY])


def _format_time(millis: int) -> str:
    return from_millis(millis).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_time(value: str) -> int:
    if not _TIME.fullmatch(value):
        raise ValueError(value)
    return to_millis(datetime.fromisoformat(value))


def _check_text(value: Any) -> str:
    if not isinstance(value, str) or sanitize_text(value) != value:
        raise ValueError
    return value


def _check_id(value: Any) -> str:
    if not _check_text(value):
        raise ValueError
    return value


def _check_int(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _parse_flag(value: Any) -> int:
    if not isinstance(value, bool):
        raise TypeError
    return int(value)


def _parse_hash(value: Any) -> bytes:
    read = bytes.fromhex(value)
    if len(read) != 32 or read.hex() != value:
        raise ValueError
    return read


def _return_value(value: Any) -> Any:
    return value


_WRITERS: Final[Mapping[FieldType, Callable[[Any], Any]]] = {
    FieldType.ID: _return_value,
    FieldType.TEXT: _return_value,
    FieldType.JSON: embed_json,
    FieldType.LIST: embed_json,
    FieldType.INT: int,
    FieldType.FLAG: bool,
    FieldType.TIME: _format_time,
    FieldType.HASH: lambda value: bytes(value).hex(),
    FieldType.BYTES: lambda value: base64.b64encode(bytes(value)).decode(),
}
_READERS: Final[Mapping[FieldType, Callable[[Any], Any]]] = {
    FieldType.ID: _check_id,
    FieldType.TEXT: _check_text,
    FieldType.JSON: extract_json,
    FieldType.LIST: extract_json,
    FieldType.INT: _check_int,
    FieldType.FLAG: _parse_flag,
    FieldType.TIME: _parse_time,
    FieldType.HASH: _parse_hash,
    FieldType.BYTES: lambda value: base64.b64decode(value, validate=True),
}
