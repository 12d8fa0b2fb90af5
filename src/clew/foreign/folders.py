"""Files that several systems keep in their folders: settings, secrets, skills, texts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.payload import as_list, as_object
from clew.foreign.homes import ForeignMemory, ForeignSecret, ForeignSkill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_VARIABLE: Final = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)$")
#: Names of variables and keys that hold a secret.
_SECRET: Final = re.compile(
    r"(?:api_?key|token|secret|password|passwd|credential|private_?key)s?$", re.IGNORECASE
)
_SKILL: Final = "SKILL.md"
#: A text of JSON, or what only JSON for people has: comments, and commas before an end.
_JSON_EXTRA: Final = re.compile(
    r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL
)


def read_text(path: Path) -> str:
    """Return the text of a file; empty if there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; ``None`` if there is none or it is damaged."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError):
        return None


def read_json_with_comments(path: Path) -> Any:
    """Return what a file of JSON with comments holds; ``None`` if there is none."""
    plain = _JSON_EXTRA.sub(lambda match: match[1] or " ", read_text(path))
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping of a YAML file; empty if there is none or it is damaged."""
    import yaml  # noqa: PLC0415  (only where there is such a file)

    try:
        return as_object(yaml.safe_load(read_text(path)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}


def get_nested(data: Mapping[str, Any], dotted: str) -> Any:
    """Return what stands at a dotted name; ``None`` if nothing does."""
    value: Any = data
    for part in dotted.split("."):
        value = as_object(value).get(part)
    return value


def read_variables(path: Path) -> dict[str, str]:
    """Return the variables of an ``.env`` file that have a value."""
    found: dict[str, str] = {}
    for line in read_text(path).splitlines():
        if match := _VARIABLE.match(line):
            value = match[2].strip().strip("\"'")
            if value:
                found[match[1]] = value
    return found


def is_secret_name(name: str) -> bool:
    """Return whether a variable or a key of that name holds a secret."""
    return _SECRET.search(name) is not None


def list_secret_variables(path: Path, place: str) -> Iterator[ForeignSecret]:
    """Yield the names of the secrets in an ``.env`` file."""
    for name in read_variables(path):
        if is_secret_name(name):
            yield ForeignSecret(name=name, place=place)


def list_secret_keys(data: object, place: str, *, prefix: str = "") -> Iterator[ForeignSecret]:
    """Yield the dotted names of the secrets in settings, lists included."""
    pairs = as_object(data).items() or enumerate(as_list(data))
    for key, value in pairs:
        name = f"{prefix}{key}"
        if isinstance(value, list) and value and is_secret_name(str(key)):
            yield ForeignSecret(name=name, place=place)
        elif isinstance(value, dict | list):
            yield from list_secret_keys(cast("object", value), place, prefix=f"{name}.")
        elif isinstance(value, str) and value and is_secret_name(str(key)):
            yield ForeignSecret(name=name, place=place)


def find_skills(folder: Path) -> Sequence[ForeignSkill]:
    """Return the folders below one that have a ``SKILL.md``, by their names."""
    try:
        files = sorted(folder.rglob(_SKILL))
    except OSError:
        return ()
    inner = [file for file in files if not _is_hidden(file, folder)]
    return [ForeignSkill(name=file.parent.name, folder=file.parent) for file in inner]


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def read_memory(folder: Path, *names: str) -> list[ForeignMemory]:
    """Return the texts of a folder that are not empty."""
    texts = [(name, read_text(folder / name).strip()) for name in names]
    return [ForeignMemory(name=name, text=text) for name, text in texts if text]
