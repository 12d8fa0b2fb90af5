"""What could be used here: keys in the environment, servers on this machine."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2

from clew.config.machine import DEFAULT_PROVIDERS
from clew.config.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Seconds that a server on this machine, or a provider, may take to tell its models.
_NEAR: Final = 1.0
_FAR: Final = 10.0
#: A version in the path of an address.
_VERSION: Final = re.compile(r"/v\d")
_KEY_WANTED: Final = (401, 403)
#: Parts of the names of models that do not chat.
_MUTE: Final = ("embed", "whisper", "tts", "dall-e", "rerank", "moderation", "image")


class Known(NamedTuple):
    """A provider whose key may be in the environment."""

    title: str
    variable: str
    #: How a model's name begins.
    prefix: str
    #: Where it is served; "" for the library's own place.
    base_url: str
    #: Where its models are listed.
    listed_at: str
    #: The model to start with; "" if the person is to choose.
    model: str = ""


_FIRST: Final = {each.variable: each.model.partition(":")[2] for each in DEFAULT_PROVIDERS}
_GEMINI: Final = "https://generativelanguage.googleapis.com/v1beta/openai"
#: In order of preference.
KNOWN: Final = (
    Known(
        "OpenAI",
        "OPENAI_API_KEY",
        "openai",
        "",
        "https://api.openai.com/v1",
        _FIRST["OPENAI_API_KEY"],
    ),
    Known(
        "Anthropic",
        "ANTHROPIC_API_KEY",
        "anthropic",
        "",
        "https://api.anthropic.com/v1",
        _FIRST["ANTHROPIC_API_KEY"],
    ),
    *(
        Known(title, variable, "openai-chat", url, url)
        for title, variable, url in (
            ("OpenRouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
            ("Google Gemini", "GEMINI_API_KEY", _GEMINI),
            ("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
            ("Mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
            ("DeepSeek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
        )
    ),
)
#: Where servers of one's own listen, unless somebody moved them.
LOCAL: Final = {
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """Where a key is kept: an environment variable, or a file."""

    env: str | None = None
    file: Path | None = None

    @property
    def told(self) -> str:
        """For people: never the key itself."""
        return f"the environment variable {self.env}" if self.env else f"the file {self.file}"

    def toml(self, home: Path) -> str:
        """How ``config.toml`` says it; files in the home by their name in it."""
        if self.env is not None:
            return f"{{ env = {json.dumps(self.env)} }}"
        assert self.file is not None
        inside = self.file.is_relative_to(home)
        name = self.file.relative_to(home).as_posix() if inside else str(self.file)
        return f"{{ file = {json.dumps(name, ensure_ascii=False)} }}"

    def reveal(self, environ: Mapping[str, str]) -> str:
        """
        The key itself.

        :raises SettingsError: if it is not there
        """
        if self.env is not None:
            return Secret.from_env(self.env, key="the key", environ=environ).reveal()
        assert self.file is not None
        return Secret.from_file(self.file, key="the key").reveal()


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A place where a model is served."""

    #: For people: ``Ollama at http://127.0.0.1:11434/v1``.
    what: str
    #: How a model's name begins: ``openai-chat``.
    prefix: str
    base_url: str | None
    key: Key | None
    #: Names of models without their beginning; the one to start with first.
    models: tuple[str, ...]


def with_keys(environ: Mapping[str, str]) -> list[Offer]:
    """Providers whose keys are in the environment and whose packages are installed."""
    return [
        Offer(
            what=f"{each.title} ({each.variable} is in the environment)",
            prefix=each.prefix,
            base_url=each.base_url or None,
            key=Key(env=each.variable),
            models=(each.model,) if each.model else (),
        )
        for each in KNOWN
        if environ.get(each.variable) and find_spec(each.prefix.partition("-")[0])
    ]


async def on_this_machine(places: Mapping[str, str]) -> list[Offer]:
    """The servers that answer at these places (URLs by name) and have a model."""
    told = await asyncio.gather(
        *(_listed(url, {}, patience=_NEAR, near=True) for url in places.values())
    )
    return [
        Offer(what=f"{name} at {url}", prefix="openai-chat", base_url=url, key=None, models=models)
        for (name, url), models in zip(places.items(), told, strict=True)
        if models
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The models that a server names."""

    models: tuple[str, ...] = ()
    #: The address at which it named them; ``None`` for the provider's own.
    base_url: str | None = None
    #: It tells nothing without a key, or with this one.
    wants_key: bool = False


async def list_models(prefix: str, base_url: str | None, key: str | None) -> Listing:
    """Ask a server for its models: at its address, and below ``/v1`` where that is missing."""
    places: list[str | None] = [base_url]
    if base_url is not None and not _VERSION.search(urlsplit(base_url).path):
        places.append(f"{base_url.rstrip('/')}/v1")
    wants_key = False
    for place in places:
        found = await _list_at(prefix, place, key)
        if found.models:
            return found
        wants_key = wants_key or found.wants_key
    return Listing(base_url=base_url, wants_key=wants_key)


async def models_of(prefix: str, base_url: str | None, key: str | None) -> tuple[str, ...]:
    """What a server says that it has; nothing if it does not say."""
    return (await list_models(prefix, base_url, key)).models


async def _list_at(prefix: str, base_url: str | None, key: str | None) -> Listing:
    known = next((each.listed_at for each in KNOWN if each.prefix == prefix), None)
    url = base_url or known
    if url is None:
        return Listing()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if prefix == "anthropic":
        headers = {"x-api-key": key or "", "anthropic-version": "2023-06-01"}
    status, models = await _asked(url, headers, patience=_FAR, near=is_near(url))
    return Listing(models=models, base_url=base_url, wants_key=status in _KEY_WANTED)


def is_near(url: str) -> bool:
    """Whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


async def _listed(
    url: str, headers: Mapping[str, str], *, patience: float, near: bool
) -> tuple[str, ...]:
    return (await _asked(url, headers, patience=patience, near=near))[1]


async def _asked(
    url: str, headers: Mapping[str, str], *, patience: float, near: bool
) -> tuple[int, tuple[str, ...]]:
    """Return a server's status, 0 for none, and the models that it names."""
    try:
        # A proxy does not lead to this machine.
        async with httpx2.AsyncClient(timeout=patience, trust_env=not near) as client:
            answer = await client.get(f"{url.rstrip('/')}/models", headers=dict(headers))
        told: Any = answer.json() if answer.status_code == 200 else None
    # ImportError: a proxy of a kind whose package is missing, which the trial explains.
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError, ImportError):
        return 0, ()
    return answer.status_code, _names(told)


def _names(told: object) -> tuple[str, ...]:
    """The models of a list: as OpenAI gives it, under another name, or bare."""
    if isinstance(told, dict):
        fields = cast("dict[str, object]", told)
        told = fields.get("data") or fields.get("models")
    if not isinstance(told, list):
        return ()
    names = [_name(each).removeprefix("models/") for each in cast("list[object]", told)]
    given = [name for name in names if name]
    # Where none would be left, the names say nothing about what the models do.
    return tuple([name for name in given if not _is_mute(name)] or given)


def _name(listed: object) -> str:
    if isinstance(listed, str):
        return listed
    if not isinstance(listed, dict):
        return ""
    fields = cast("dict[str, object]", listed)
    return next((str(fields[key]) for key in ("id", "name", "model") if fields.get(key)), "")


def _is_mute(name: str) -> bool:
    return any(part in name.lower() for part in _MUTE)


def shown(models: Sequence[str], most: int = 8) -> str:
    """Names of models in a sentence."""
    more = f" and {len(models) - most} more" if len(models) > most else ""
    return ", ".join(models[:most]) + more
