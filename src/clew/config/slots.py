"""Finding the setting that a path names, or the one that was probably meant."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.config.keys import keys_of
from clew.config.secret import FORMS, named_like_a_secret
from clew.config.settings import SECTIONS, ChannelSettings, ProviderSettings
from clew.config.values import SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.keys import Key
    from clew.config.kinds import Kind

Path_ = tuple[str, ...]

CHANNELS: Final = "channels"
PLUGINS: Final = "plugins"
PROVIDERS: Final = "providers"
COMMON: Final = dict(keys_of(ChannelSettings))
OF_PROVIDER: Final = dict(keys_of(ProviderSettings))
#: Sections of tables that a user names.
NAMED: Final = (CHANNELS, PROVIDERS)
KEYS: Final = {
    (section, name): key for section, kind in SECTIONS.items() for name, key in keys_of(kind)
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A setting."""

    path: Path_
    #: ``None`` for a key of a channel or plugin that only it knows.
    kind: Kind[object] | None
    #: The last name of the path was no setting but the form of a secret.
    form: str | None = None

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_secret(self) -> bool:
        """Whether text in this place is a secret."""
        return self.kind is SECRET or (self.kind is None and named_like_a_secret(self.path[-1]))


def find(path: Path_) -> Slot | None:
    """The setting that a path names."""
    if path[-1] in FORMS and (secret := _exactly(path[:-1])) and secret.is_secret:
        return Slot(path=secret.path, kind=SECRET, form=path[-1])
    return _exactly(path)


def _exactly(path: Path_) -> Slot | None:
    if not all(path):
        return None
    if key := key_at(path):
        return Slot(path=_with_hyphens(path), kind=key.kind)
    if len(path) > 2 and path[0] in (CHANNELS, PLUGINS) and not _under_a_key(path):
        return Slot(path=path, kind=None)
    return None


def _with_hyphens(path: Path_) -> Path_:
    """Name a provider as its models do: an environment variable can hold no hyphen."""
    if path[0] != PROVIDERS:
        return path
    return (path[0], path[1].replace("_", "-"), *path[2:])


def is_table(path: Path_) -> bool:
    """Whether a path may name a table, one without any key."""
    if path[0] == PROVIDERS:
        return len(path) <= 2
    if path[0] in (CHANNELS, PLUGINS) and len(path) > 1:
        return key_at(path) is None and not _under_a_key(path)
    return len(path) == 1 and (path[0] in SECTIONS or path[0] in NAMED)


def key_at(path: Path_) -> Key | None:
    """The declared key at a path."""
    if len(path) == 3 and path[0] == CHANNELS:
        return COMMON.get(path[2])
    if len(path) == 3 and path[0] == PROVIDERS:
        return OF_PROVIDER.get(path[2])
    return KEYS.get((path[0], path[1])) if len(path) == 2 else None


def _under_a_key(path: Path_) -> bool:
    """Whether a path goes on below something that is a value."""
    return any(key_at(path[:end]) for end in range(2, len(path)))


def advice(path: Path_) -> str:
    """What to write instead of an unknown path."""
    section = path[0]
    if section == CHANNELS and len(path) < 3:
        return "write channels.NAME.KEY, for example channels.telegram.token"
    if section == PROVIDERS:
        return f"[providers.NAME] has {', '.join(OF_PROVIDER)}"
    if near := _nearest(path):
        return f"did you mean {near}?"
    if section in SECTIONS:
        known = ", ".join(name for name, _ in keys_of(SECTIONS[section]))
        return f"[{section}] has {known}"
    return f"the sections are {', '.join(sorted([*SECTIONS, *NAMED]))}"


def _nearest(path: Path_) -> str | None:
    if near := _closest(".".join(path), (".".join(known) for known in KEYS), cutoff=0.75):
        return near
    if path[0] not in SECTIONS and len(path) == 1:
        return _closest(path[0], [*SECTIONS, *NAMED], cutoff=0.6)
    return _of_same_name(path[-1]) or _in_section(path)


def _of_same_name(name: str) -> str | None:
    """A setting of that name in another section, if there is only one."""
    same = [".".join(known) for known in KEYS if known[1] == name]
    return same[0] if len(same) == 1 else None


def _in_section(path: Path_) -> str | None:
    section = SECTIONS.get(path[0])
    if section is None or len(path) < 2:
        return None
    near = _closest(path[1], (name for name, _ in keys_of(section)), cutoff=0.5)
    return f"{path[0]}.{near}" if near else None


def _closest(word: str, known: Iterator[str] | list[str], *, cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)
