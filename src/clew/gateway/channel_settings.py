"""Settings of channels: installed kinds, declared keys, and mistakes in them."""

from __future__ import annotations

import difflib
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, cast

from clew.config.lookup import CHANNEL_FIELDS
from clew.plugin.declarations import ChannelKind
from clew.plugin.loading import get_features
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from clew.config.settings import ChannelSettings, Settings
    from clew.plugin.registry import Features

ENTRY_POINT_GROUP: Final = "clew.channels"
#: The attribute of a channel's module with the names of its own keys.
OPTIONS_ATTRIBUTE: Final = "OPTIONS"


class ChannelSource(Record, kw_only=False):
    """The source of the factory of a kind of channel."""

    load: Callable[[], object]


def list_channel_kinds(features: Features | None = None) -> Mapping[str, ChannelSource]:
    """Return the channels of features and installed packages, by name."""
    kinds = {
        point.name: ChannelSource(point.load) for point in entry_points(group=ENTRY_POINT_GROUP)
    }
    declared = [] if features is None else features.values(ChannelKind)
    return {**kinds, **{kind.name: ChannelSource(partial(_load, kind)) for kind in declared}}


def _load(kind: ChannelKind) -> object:
    if not isinstance(kind.factory, str):
        return kind.factory
    module, _, name = kind.factory.partition(":")
    return getattr(import_module(module), name)


def find_channel_problems(settings: Settings) -> list[str]:
    """Return a sentence for each unknown channel and each unknown key of a channel."""
    known = list_channel_kinds(get_features(settings))
    return [
        problem
        for name, channel in settings.channels.items()
        for problem in _find_problems(settings, name, channel, known)
    ]


def _find_problems(
    settings: Settings, name: str, channel: ChannelSettings, known: Mapping[str, ChannelSource]
) -> Iterator[str]:
    kind = channel.kind or name
    if kind not in known:
        setting = f"channels.{name}.kind" if channel.kind else f"channels.{name}"
        yield (
            f"{_origin_of(settings, name)}: {setting}: there is no channel {kind!r}"
            f"{_suggest_kind(kind, known)}; installed are {', '.join(sorted(known)) or 'none'}"
        )
        return
    own = _declared_options(known[kind]) if channel.options else None
    if own is None:
        return
    for key in channel.options:
        if key not in own:
            place = _origin_of(settings, name, key)
            yield (
                f"{place}: there is no setting "
                f"channels.{name}.{key}{_suggest_option(name, key, own)}"
            )


def _declared_options(point: ChannelSource) -> frozenset[str] | None:
    """Return the keys that a channel's module declares; ``None`` if it cannot be imported."""
    try:
        factory: object = point.load()
    except ImportError:
        return None  # reported where it is used
    module = sys.modules.get(getattr(factory, "__module__", ""))
    own: object = getattr(module, OPTIONS_ATTRIBUTE, None)
    return None if own is None else frozenset(cast("Iterable[str]", own))


def _suggest_option(name: str, key: str, own: frozenset[str]) -> str:
    known = sorted({*own, *CHANNEL_FIELDS})
    if close := difflib.get_close_matches(key, known, n=1, cutoff=0.5):
        return f"; did you mean channels.{name}.{close[0]}?"
    return f"; [channels.{name}] has {', '.join(known)}"


def _suggest_kind(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _origin_of(settings: Settings, name: str, key: str = "") -> str:
    """Return where a setting of a channel's table was written."""
    table = f"channels.{name}"
    wanted = f"{table}.{key}" if key else table
    for setting, origin in settings.origins.items():
        if setting == wanted or setting.startswith(f"{wanted}."):
            return origin.place
    return str(settings.config_file)
