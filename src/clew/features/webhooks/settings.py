"""Settings of one webhook channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.config.secret import Secret
from clew.errors import SettingsError
from clew.features.webhooks.signing import decode_secret
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.gateway.channel import ChannelConfig

#: The channel's own settings keys.
OPTIONS: Final = frozenset({"secret", "old_secret", "longest", "documents"})
#: Characters of a message, unless the settings say otherwise.
DEFAULT_MAX_LENGTH: Final = 4_000
#: The lowest message limit that the settings may have.
_MIN_LENGTH: Final = 100


class WebhookSettings(Record):
    """The settings of ``[channels.NAME]``, checked."""

    url: str
    #: The first signs; requests may be signed with any.
    keys: Sequence[bytes]
    #: Characters of a message.
    max_length: int
    #: The other side shows the documents of messages.
    documents: bool


def read_webhook_settings(config: ChannelConfig) -> WebhookSettings:
    """
    Return the settings of a webhook.

    :raises SettingsError: if a setting is missing or invalid
    """
    table = f"channels.{config.name}"
    if config.base_url is None:
        raise SettingsError(f"{table}.base_url is missing: answers are posted to it")
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    keys = [
        _read_secret(config, name) for name in ("secret", "old_secret") if name in config.options
    ]
    if "secret" not in config.options:
        raise SettingsError(f"{table}.secret is missing: requests are signed with it, both ways")
    return WebhookSettings(
        url=config.base_url,
        keys=keys,
        max_length=_read_max_length(config),
        documents=_read_documents(config),
    )


def _read_secret(config: ChannelConfig, name: str) -> bytes:
    secret = config.options[name]
    try:
        key = decode_secret(secret.reveal() if isinstance(secret, Secret) else str(secret))
    except ValueError as error:
        raise SettingsError(f"channels.{config.name}.{name} cannot be used: {error}") from None
    if len(key) < 16:
        raise SettingsError(
            f"channels.{config.name}.{name} is too short to be a secret: it needs 16 bytes, which "
            "openssl rand -hex 16 makes"
        )
    return key


def _read_documents(config: ChannelConfig) -> bool:
    said = str(config.options.get("documents", False)).lower()
    if said not in ("true", "false"):
        raise SettingsError(f"channels.{config.name}.documents must be true or false, not {said!r}")
    return said == "true"


def _read_max_length(config: ChannelConfig) -> int:
    said = str(config.options.get("longest", DEFAULT_MAX_LENGTH))
    if not (said.isascii() and said.isdigit() and int(said) >= _MIN_LENGTH):
        raise SettingsError(
            f"channels.{config.name}.longest must be a number of characters of at least "
            f"{_MIN_LENGTH}, not {said!r}"
        )
    return int(said)
