"""Check, before a gateway reports ready, that the configured models can be built."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from clew.cli.common import fast_import
from clew.config.model_access import is_offline_only, iter_named_models, resolve_access
from clew.config.settings import OFFLINE
from clew.errors import SettingsError

if TYPE_CHECKING:
    from clew.config import Settings

#: Their package is always installed; with an address or a key nothing can be missing.
_BUNDLED_PROVIDERS: Final = frozenset({"openai", "openai-chat"})
_CLIENT_VARIABLES: Final = ("_proxy", "ssl_cert_file", "ssl_cert_dir")


def check_models_usable(settings: Settings) -> None:
    """
    Check every configured model, without a request to any.

    The model library takes half a second to import, so the check is left out where nothing
    can be missing.

    :raises SettingsError: with a sentence for each model that cannot be used
    """
    if is_offline_only(settings):
        return
    names = [name for _, name in iter_named_models(settings)]
    if not settings.providers and all(_is_fully_configured(settings, name) for name in names):
        _check_environment()
        return
    with fast_import():
        from clew.runtime import find_model_problems  # noqa: PLC0415  (only where it is needed)
    if found := find_model_problems(settings):
        raise SettingsError(*found)


def _is_fully_configured(settings: Settings, name: str) -> bool:
    if name == OFFLINE:
        return True
    access = resolve_access(settings, name)
    reached = access.base_url is not None or access.api_key is not None
    return name.partition(":")[0] in _BUNDLED_PROVIDERS and reached


def _check_environment() -> None:
    read = [name for name, value in os.environ.items() if value]
    if any(name.lower().endswith(_CLIENT_VARIABLES) for name in read):
        from clew.agent.preflight import (  # noqa: PLC0415  (as the model library)
            check_network_environment,
        )

        check_network_environment()
