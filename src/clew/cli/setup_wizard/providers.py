"""Available providers: API keys in the environment, model servers on this machine."""

from __future__ import annotations

import asyncio
import json
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2

from clew.config.defaults import DEFAULT_PROVIDERS
from clew.config.secret import Secret
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Seconds that a server on this machine, or a provider, may take to list its models.
_LOCAL_TIMEOUT: Final = 1.0
_REMOTE_TIMEOUT: Final = 10.0
#: A version in the path of a URL.
_VERSION_IN_PATH: Final = re.compile(r"/v\d")
_KEY_REQUIRED_STATUSES: Final = (401, 403)
#: Name parts of models that cannot chat.
_NON_CHAT_PARTS: Final = ("embed", "whisper", "tts", "dall-e", "rerank", "moderation", "image")


class ProviderPreset(NamedTuple):
    """A provider whose key may be in the environment."""

    title: str
    variable: str
    #: The prefix of its model names.
    prefix: str
    #: Its API; "" for the library's default.
    base_url: str
    #: URL of its list of models.
    listed_at: str
    #: The default model; "" if the user has to choose.
    model: str = ""


_DEFAULT_MODELS: Final = {each.variable: each.model.partition(":")[2] for each in DEFAULT_PROVIDERS}
_GEMINI_URL: Final = "https://generativelanguage.googleapis.com/v1beta/openai"
#: In order of preference.
PRESETS: Final = (
    ProviderPreset(
        "OpenAI",
        "OPENAI_API_KEY",
        "openai",
        "",
        "https://api.openai.com/v1",
        _DEFAULT_MODELS["OPENAI_API_KEY"],
    ),
    ProviderPreset(
        "Anthropic",
        "ANTHROPIC_API_KEY",
        "anthropic",
        "",
        "https://api.anthropic.com/v1",
        _DEFAULT_MODELS["ANTHROPIC_API_KEY"],
    ),
    *(
        ProviderPreset(title, variable, "openai-chat", url, url)
        for title, variable, url in (
            ("OpenRouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
            ("Google Gemini", "GEMINI_API_KEY", _GEMINI_URL),
            ("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
            ("Mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
            ("DeepSeek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
        )
    ),
)
#: The default addresses of local model servers.
LOCAL_SERVERS: Final = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}


class KeyLocation(Record):
    """The place where a key is kept: an environment variable, or a file."""

    env: str | None = None
    file: Path | None = None

    @property
    def description(self) -> str:
        """Return the place for people, never the key itself."""
        return f"the environment variable {self.env}" if self.env else f"the file {self.file}"

    def to_toml(self, home: Path) -> str:
        """Return the reference for ``config.toml``; files in the home are relative to it."""
        if self.env is not None:
            return f"{{ env = {json.dumps(self.env)} }}"
        assert self.file is not None
        inside = self.file.is_relative_to(home)
        name = self.file.relative_to(home).as_posix() if inside else str(self.file)
        return f"{{ file = {json.dumps(name, ensure_ascii=False)} }}"

    def reveal(self, environ: Mapping[str, str]) -> str:
        """
        Return the key itself.

        :raises SettingsError: if it is not there
        """
        if self.env is not None:
            return Secret.from_env(self.env, key="the key", environ=environ).reveal()
        assert self.file is not None
        return Secret.from_file(self.file, key="the key").reveal()


class ProviderOption(Record):
    """A place where models are served."""

    #: For people: ``Ollama at http://127.0.0.1:11434/v1``.
    label: str
    #: The prefix of its model names: ``openai-chat``.
    prefix: str
    base_url: str | None
    key: KeyLocation | None
    #: Names of models without their prefix; the default first.
    models: tuple[str, ...]


def find_configured_providers(environ: Mapping[str, str]) -> list[ProviderOption]:
    """Return the providers whose key is in the environment and whose package is installed."""
    return [
        ProviderOption(
            label=f"{each.title} ({each.variable} is in the environment)",
            prefix=each.prefix,
            base_url=each.base_url or None,
            key=KeyLocation(env=each.variable),
            models=(each.model,) if each.model else (),
        )
        for each in PRESETS
        if environ.get(each.variable) and find_spec(each.prefix.partition("-")[0])
    ]


async def find_local_servers(places: Mapping[str, str]) -> list[ProviderOption]:
    """Return the servers that answer at these addresses (URLs by name) and have a model."""
    told = await asyncio.gather(
        *(
            _fetch_model_names(url, {}, patience=_LOCAL_TIMEOUT, near=True)
            for url in places.values()
        )
    )
    return [
        ProviderOption(
            label=f"{name} at {url}", prefix="openai-chat", base_url=url, key=None, models=models
        )
        for (name, url), models in zip(places.items(), told, strict=True)
        if models
    ]


class ModelListing(Record):
    """The models that a server lists."""

    models: tuple[str, ...] = ()
    #: The URL of the list; ``None`` for the provider's own.
    base_url: str | None = None
    #: It lists nothing without a key, or with this one.
    wants_key: bool = False


async def list_models(prefix: str, base_url: str | None, key: str | None) -> ModelListing:
    """List a server's models: at its address, and below ``/v1`` where that is missing."""
    places: list[str | None] = [base_url]
    if base_url is not None and not _VERSION_IN_PATH.search(urlsplit(base_url).path):
        places.append(f"{base_url.rstrip('/')}/v1")
    wants_key = False
    for place in places:
        found = await _list_models_at(prefix, place, key)
        if found.models:
            return found
        wants_key = wants_key or found.wants_key
    return ModelListing(base_url=base_url, wants_key=wants_key)


async def list_model_names(prefix: str, base_url: str | None, key: str | None) -> tuple[str, ...]:
    """Return the models that a server lists; empty if it lists none."""
    return (await list_models(prefix, base_url, key)).models


async def _list_models_at(prefix: str, base_url: str | None, key: str | None) -> ModelListing:
    known = next((each.listed_at for each in PRESETS if each.prefix == prefix), None)
    url = base_url or known
    if url is None:
        return ModelListing()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if prefix == "anthropic":
        headers = {"x-api-key": key or "", "anthropic-version": "2023-06-01"}
    status, models = await _fetch_models(
        url, headers, patience=_REMOTE_TIMEOUT, near=is_local_address(url)
    )
    return ModelListing(
        models=models, base_url=base_url, wants_key=status in _KEY_REQUIRED_STATUSES
    )


def is_local_address(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


async def _fetch_model_names(
    url: str, headers: Mapping[str, str], *, patience: float, near: bool
) -> tuple[str, ...]:
    return (await _fetch_models(url, headers, patience=patience, near=near))[1]


async def _fetch_models(
    url: str, headers: Mapping[str, str], *, patience: float, near: bool
) -> tuple[int, tuple[str, ...]]:
    """Return a server's status, 0 for none, and the models that it lists."""
    try:
        # No proxy for this machine.
        async with httpx2.AsyncClient(timeout=patience, trust_env=not near) as client:
            answer = await client.get(f"{url.rstrip('/')}/models", headers=dict(headers))
        told: Any = answer.json() if answer.status_code == 200 else None
    # ImportError: the package for this kind of proxy is missing; the connection check explains it.
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, ImportError):
        return 0, ()
    return answer.status_code, _parse_model_names(told)


def _parse_model_names(told: object) -> tuple[str, ...]:
    """Parse a list of models: in OpenAI's format, under another key, or bare."""
    if isinstance(told, dict):
        fields = cast("dict[str, object]", told)
        told = fields.get("data") or fields.get("models")
    if not isinstance(told, list):
        return ()
    names = [_parse_model_name(each).removeprefix("models/") for each in cast("list[object]", told)]
    given = [name for name in names if name]
    # If none would be left, the names do not tell what the models do.
    return tuple([name for name in given if not _is_non_chat_model(name)] or given)


def _parse_model_name(listed: object) -> str:
    if isinstance(listed, str):
        return listed
    if not isinstance(listed, dict):
        return ""
    fields = cast("dict[str, object]", listed)
    return next((str(fields[key]) for key in ("id", "name", "model") if fields.get(key)), "")


def _is_non_chat_model(name: str) -> bool:
    return any(part in name.lower() for part in _NON_CHAT_PARTS)


def format_model_names(models: Sequence[str], most: int = 8) -> str:
    """Format names of models for a sentence."""
    more = f" and {len(models) - most} more" if len(models) > most else ""
    return ", ".join(models[:most]) + more
