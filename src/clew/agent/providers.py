"""
Providers of models: each with the address, key and patience that the settings give it.

The library's classes differ in what they take. Here each is made to honour all of it, or is
refused: text must never leave for another server than the one that is set.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.profiles import merge_profile
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.providers.gateway import (
    gateway_provider,  # pyright: ignore[reportUnknownVariableType]  (of packages not installed)
)

from clew.agent.known_secrets import register_secrets
from clew.agent.start_problems import refuse_unusable_key
from clew.agent.tolerant.client import TolerantClient
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.providers import Provider

    from clew.agent.models import ModelSpec

#: What the classes call the address and the key that they take.
_ADDRESSES = ("base_url", "api_base", "azure_endpoint", "api_host")
_KEYS = ("api_key", "token")
_GATEWAY = "gateway/"
_OPENAI = "openai_client"
_OPENAI_HOST = "api.openai.com"
#: A server of one's own often wants no key, but the clients insist on one.
_NO_KEY = "none"


def make_provider(kind: str, spec: ModelSpec) -> Provider[Any]:
    """
    Return the provider of a kind, reached as the model's settings say.

    A key in the environment is its provider's own: it is not sent to another address.

    :raises SettingsError: if the provider's class cannot be given what is set
    """
    if kind.startswith(_GATEWAY):
        upstream = kind.removeprefix(_GATEWAY)
        return gateway_provider(upstream, api_key=_key(spec), base_url=spec.base_url)
    return _of_class(infer_provider_class(kind), kind, spec)


def finish_model(model: Model, spec: ModelSpec) -> None:
    """
    Give the client of a model its time limit, and see that it asks where it should.

    :raises SettingsError: if it would ask a server that nobody named
    """
    # A model may have a client of its own, made from its provider's.
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0  # Attempts are counted and stored with the turn.
    if hasattr(client, "timeout"):
        client.timeout = spec.timeout
    key = getattr(client, "api_key", None)
    # One that is the provider's own, in the environment, was not looked at before.
    refuse_unusable_key(key if isinstance(key, str) else None, setting=f"the key of {spec.name}")
    register_secrets([key])
    address = str(getattr(client, "base_url", "")) or model.base_url or ""
    _check_address(urlsplit(address).netloc.lower(), spec)


def is_provider(kind: str) -> bool:
    """Return whether the library has a provider of this name, installed or not."""
    try:
        infer_provider_class(kind)
    except ImportError:
        return True
    except ValueError:
        return False
    return True


def _key(spec: ModelSpec) -> str | None:
    return spec.api_key or (_NO_KEY if spec.base_url else None)


def _parameters(provider: type[Provider[Any]]) -> frozenset[str]:
    return frozenset(inspect.signature(provider.__init__).parameters)


def _asked_like_openai(provider: type[Provider[Any]]) -> bool:
    return _OPENAI in _parameters(provider)


def _openai_like(found: type[Provider[Any]], spec: ModelSpec) -> type[Provider[Any]]:
    """Return the provider's class with our profile, and the address in it if it takes none."""

    def model_profile(model_name: str) -> ModelProfile | None:
        return merge_profile(found.model_profile(model_name), _profile(spec))

    members: dict[str, object] = {"model_profile": staticmethod(model_profile)}
    if spec.base_url is not None and _address_is_a_property(found):
        members["base_url"] = property(lambda _: spec.base_url)
    return type(found.__name__, (found,), members)


def _address_is_a_property(provider: type[Provider[Any]]) -> bool:
    """Return whether a class makes its client with the public address that its property holds."""
    takes = _parameters(provider)
    return _asked_like_openai(provider) and not takes & {*_ADDRESSES} and bool(takes & {*_KEYS})


def _profile(spec: ModelSpec) -> ModelProfile:
    from pydantic_ai.profiles.openai import (  # noqa: PLC0415  (an optional provider)
        OpenAIModelProfile,
    )

    # A stream without a finish reason was cut, however cleanly it ended. Many templates refuse
    # instructions in mid conversation.
    profile = OpenAIModelProfile(
        openai_chat_streaming_requires_finish_reason=True, supports_inline_system_prompts=False
    )
    if spec.base_url is not None:
        # Servers that speak the protocol without being OpenAI reject strict tool schemas.
        profile["openai_supports_strict_tool_definition"] = False
    return profile


def _of_class(found: type[Provider[Any]], kind: str, spec: ModelSpec) -> Provider[Any]:
    arguments = _arguments(found, kind, spec)
    for takes_client, our_client in _CLIENTS.items():
        if takes_client in _parameters(found):
            ours: Any = _openai_like(found, spec) if takes_client == _OPENAI else found
            found_out = ours(**arguments, http_client=_unused()).client
            if (client := our_client(found_out, spec)) is not None:
                return ours(**{takes_client: client})
            return ours(**arguments)
    return cast("Any", found)(**arguments)


def _unused() -> httpx2.AsyncClient:
    """Return a client that costs nothing, for a provider that only tells its address and key."""
    return httpx2.AsyncClient(transport=httpx2.MockTransport(_refuse), trust_env=False)


def _refuse(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"nothing is sent with this client, but {request.url} was asked")


def _openai(client: AsyncOpenAI, spec: ModelSpec) -> AsyncOpenAI | None:
    from openai import AsyncOpenAI  # noqa: PLC0415  (an optional provider)

    from clew.agent.openai_client import OpenAIClient  # noqa: PLC0415  (as above)

    # Clients of another class sign or address their requests in a way of their own.
    if type(client) is not AsyncOpenAI:
        return None
    return OpenAIClient(
        base_url=client.base_url,
        api_key=client.api_key,
        default_headers=_headers_of(client),
        timeout=spec.timeout,
        max_retries=0,
        http_client=TolerantClient(),
    )


def _headers_of(client: Any) -> Any:
    """Return what a provider adds to each request: the SDK has no public word for it."""
    return client._custom_headers  # noqa: SLF001


def _anthropic(client: AsyncAnthropic, spec: ModelSpec) -> AsyncAnthropic:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  (an optional provider)

    return AsyncAnthropic(
        base_url=client.base_url,
        api_key=client.api_key,
        timeout=spec.timeout,
        max_retries=0,
        http_client=TolerantClient(),
    )


#: By the parameter that takes a ready client: what makes ours of the one that was found out.
_CLIENTS: Final[dict[str, Callable[[Any, ModelSpec], Any]]] = {
    _OPENAI: _openai,
    "anthropic_client": _anthropic,
}


def _arguments(found: type[Provider[Any]], kind: str, spec: ModelSpec) -> dict[str, object]:
    takes = _parameters(found)
    arguments: dict[str, object] = {}
    if name := next((name for name in _KEYS if name in takes), None):
        arguments[name] = _key(spec)
    elif spec.api_key is not None:
        raise SettingsError(_cannot(spec, kind, "api_key", "it signs in by itself"))
    if name := next((name for name in _ADDRESSES if name in takes), None):
        arguments[name] = spec.base_url
    elif spec.base_url is not None and not _address_is_a_property(found):
        raise SettingsError(_cannot(spec, kind, "base_url", "it has one address only"))
    return {name: value for name, value in arguments.items() if value is not None}


def _cannot(spec: ModelSpec, kind: str, key: str, why: str) -> str:
    return (
        f"{spec.table}.{key} cannot be used with {kind} ({why}): remove it, or name the model "
        f"openai-chat:NAME for a server of your own"
    )


def _check_address(host: str, spec: ModelSpec) -> None:
    if spec.base_url is not None and host != urlsplit(spec.base_url).netloc.lower():
        raise SettingsError(
            f"{spec.table}.base_url is not where {spec.name!r} would be asked: name the model "
            "openai-chat:NAME instead, for a server of your own"
        )
    # The client's own default, where a provider's class leaves the address open.
    if spec.base_url is None and host == _OPENAI_HOST and not spec.name.startswith("openai"):
        raise SettingsError(
            f"{spec.setting} is {spec.name!r} but its address is not known: set "
            f"{spec.table}.base_url"
        )
