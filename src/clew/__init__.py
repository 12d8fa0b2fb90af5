"""
Clew: an agent gateway that cannot lose, double or scramble a conversation.

The names below are the public API; everything else may change. Each is imported when it is first
used, so that ``import clew`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from clew import distribution

if TYPE_CHECKING:
    from clew.config.load import load_settings
    from clew.config.settings import Settings
    from clew.core.double_text import DoubleText
    from clew.core.entry import Entry
    from clew.core.events import ConversationEvent, Delta, EntryAppended, InputCompleted
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.errors import (
        ChannelError,
        ClewError,
        NotFound,
        OperationRefused,
        SettingsError,
        StoreError,
        UsageError,
    )
    from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
    from clew.hooks.specs import hookimpl
    from clew.runtime import Application, open_application
    from clew.store.contract import Store
    from clew.store.opening import open_store

__all__ = [
    "AcceptResult",
    "Application",
    "Channel",
    "ChannelCapabilities",
    "ChannelConfig",
    "ChannelError",
    "ClewError",
    "ConversationEvent",
    "Delta",
    "DoubleText",
    "Engine",
    "Entry",
    "EntryAppended",
    "InputCompleted",
    "NotFound",
    "OperationRefused",
    "Route",
    "Settings",
    "SettingsError",
    "Store",
    "StoreError",
    "UsageError",
    "__version__",
    "hookimpl",
    "load_settings",
    "open_application",
    "open_store",
]

__version__ = distribution.VERSION

#: The module of each name.
_MODULES = {
    "AcceptResult": "clew.core.inbox",
    "Application": "clew.runtime",
    "Channel": "clew.gateway.channel",
    "ChannelCapabilities": "clew.gateway.channel",
    "ChannelConfig": "clew.gateway.channel",
    "ConversationEvent": "clew.core.events",
    "Delta": "clew.core.events",
    "DoubleText": "clew.core.double_text",
    "Engine": "clew.engine.engine",
    "Entry": "clew.core.entry",
    "EntryAppended": "clew.core.events",
    "InputCompleted": "clew.core.events",
    "Route": "clew.core.route",
    "Settings": "clew.config.settings",
    "Store": "clew.store.contract",
    "hookimpl": "clew.hooks.specs",
    "load_settings": "clew.config.load",
    "open_application": "clew.runtime",
    "open_store": "clew.store.opening",
}
_ERRORS = "clew.errors"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, _ERRORS)), name)
    return value


def __dir__() -> list[str]:
    return __all__
