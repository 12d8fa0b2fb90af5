"""Settings of one WhatsApp channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from clew.config.secret import Secret
from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from clew.gateway.channel import ChannelConfig

#: The channel's own settings keys.
OPTIONS: Final = frozenset(
    {"phone_number_id", "app_secret", "verify_token", "template", "template_language", "version"}
)
#: Where the Graph API is, and its version, unless the settings say otherwise.
_BASE_URL, _VERSION = "https://graph.facebook.com", "v23.0"
_LANGUAGE: Final = "en_US"


class WhatsAppSettings(Record):
    """The settings of ``[channels.NAME]``, checked."""

    #: The address of the API, with its version.
    api_url: str
    token: str
    phone_number_id: str
    app_secret: bytes
    verify_token: bytes
    #: The template by which a person is asked to write after 24 hours; none: nobody is asked.
    template: str
    template_language: str


def read_whatsapp_settings(config: ChannelConfig) -> WhatsAppSettings:
    """
    Return the settings of a channel.

    :raises SettingsError: if a setting is missing or invalid
    """
    table = f"channels.{config.name}"
    if unknown := sorted(config.options.keys() - OPTIONS):
        raise SettingsError(
            f"{table} has no setting {unknown[0]}; its own are {', '.join(sorted(OPTIONS))}"
        )
    token = "" if config.token is None else config.token.reveal().strip()
    if not token:
        raise SettingsError(f"{table}.token is missing: the access token of a system user")
    number = _read_text(config, "phone_number_id")
    if not (number.isascii() and number.isdigit()):
        raise SettingsError(
            f"{table}.phone_number_id must be the id of the phone number, in digits; the page "
            "API Setup of the app shows it"
        )
    base = config.base_url or _BASE_URL
    if urlsplit(base).scheme not in ("http", "https"):
        raise SettingsError(f"{table}.base_url is not the address of an API")
    version = _read_text(config, "version") or _VERSION
    return WhatsAppSettings(
        api_url=f"{base.rstrip('/')}/{version}",
        token=token,
        phone_number_id=number,
        app_secret=_read_secret(config, "app_secret", "the app's secret signs each webhook"),
        verify_token=_read_secret(config, "verify_token", "any text, which you type at Meta, too"),
        template=_read_text(config, "template"),
        template_language=_read_text(config, "template_language") or _LANGUAGE,
    )


def _read_text(config: ChannelConfig, name: str) -> str:
    return str(config.options.get(name) or "").strip()


def _read_secret(config: ChannelConfig, name: str, why: str) -> bytes:
    given = config.options.get(name)
    text = given.reveal() if isinstance(given, Secret) else str(given or "")
    if not text.strip():
        raise SettingsError(f"channels.{config.name}.{name} is missing: {why}")
    return text.strip().encode()
