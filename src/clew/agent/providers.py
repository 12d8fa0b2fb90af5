"""
Model providers with the address, key and timeout of the settings.

The library's classes take different arguments. Here each one honours all settings or is
refused: text must never be sent to another server than the configured one.
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
from clew.agent.preflight import check_key_sendable
from clew.agent.tolerant.client import TolerantClient
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.providers import Provider

    from clew.agent.model_spec import ModelSpec

#: Parameters of the classes for address and key.
_ADDRESS_PARAMETERS = ("base_url", "api_base", "azure_endpoint", "api_host")
_KEY_PARAMETERS = ("api_key", "token")
_GATEWAY_PREFIX = "gateway/"
_OPENAI_PARAMETER = "openai_client"
_OPENAI_HOST = "api.openai.com"
#: Self-hosted servers often need no key, but the clients require one.
_DUMMY_KEY = "none"


def make_provider(kind: str, spec: ModelSpec) -> Provider[Any]:
    """
    Return the provider of a kind, configured by the model's settings.

    A key in the environment belongs to its provider: it is not sent to another address.

    :raises SettingsError: if the provider's class does not support a setting
    """
    if kind.startswith(_GATEWAY_PREFIX):
        upstream = kind.removeprefix(_GATEWAY_PREFIX)
        return gateway_provider(upstream, api_key=_choose_key(spec), base_url=spec.base_url)
    return _make_from_class(infer_provider_class(kind), kind, spec)


def configure_client(model: Model, spec: ModelSpec) -> None:
    """
    Set the timeout of a model's client, and check its address and key.

    :raises SettingsError: if it would ask a server that is not configured
    """
    # A model may have its own client, made from its provider's.
    client: Any = getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0  # Attempts are counted and stored with the turn.
    if hasattr(client, "timeout"):
        client.timeout = spec.timeout
    key = getattr(client, "api_key", None)
    # A provider's own key in the environment was not checked before.
    check_key_sendable(key if isinstance(key, str) else None, setting=f"the key of {spec.name}")
    register_secrets([key])
    address = str(getattr(client, "base_url", "")) or model.base_url or ""
    _check_address(urlsplit(address).netloc.lower(), spec)


def is_known_provider(kind: str) -> bool:
    """Return whether the library has a provider of this name, installed or not."""
    try:
        infer_provider_class(kind)
    except ImportError:
        return True
    except ValueError:
        return False
    return True


def _choose_key(spec: ModelSpec) -> str | None:
    return spec.api_key or (_DUMMY_KEY if spec.base_url else None)


def _init_parameters(provider: type[Provider[Any]]) -> frozenset[str]:
    return frozenset(inspect.signature(provider.__init__).parameters)


def _takes_openai_client(provider: type[Provider[Any]]) -> bool:
    return _OPENAI_PARAMETER in _init_parameters(provider)


def _make_openai_class(found: type[Provider[Any]], spec: ModelSpec) -> type[Provider[Any]]:
    """Return the class with our profile, and with the address if it has no parameter for it."""

    def model_profile(model_name: str) -> ModelProfile | None:
        return merge_profile(found.model_profile(model_name), _make_profile(spec))

    members: dict[str, object] = {"model_profile": staticmethod(model_profile)}
    if spec.base_url is not None and _has_address_property(found):
        members["base_url"] = property(lambda _: spec.base_url)
    return type(found.__name__, (found,), members)


def _has_address_property(provider: type[Provider[Any]]) -> bool:
    """Return whether a class takes the address for its client from a property."""
    takes = _init_parameters(provider)
    return (
        _takes_openai_client(provider)
        and not takes & {*_ADDRESS_PARAMETERS}
        and bool(takes & {*_KEY_PARAMETERS})
    )


def _make_profile(spec: ModelSpec) -> ModelProfile:
    from pydantic_ai.profiles.openai import (  # noqa: PLC0415  (an optional provider)
        OpenAIModelProfile,
    )

    # A stream without a finish reason is incomplete, however cleanly it ended. Many templates
    # refuse instructions in the middle of a conversation, and a second system message.
    profile = OpenAIModelProfile(
        openai_chat_streaming_requires_finish_reason=True,
        supports_inline_system_prompts=False,
        openai_chat_supports_multiple_system_messages=False,
    )
    if spec.base_url is not None:
        # Servers that speak the protocol without being OpenAI reject strict tool schemas.
        profile["openai_supports_strict_tool_definition"] = False
    return profile


def _make_from_class(found: type[Provider[Any]], kind: str, spec: ModelSpec) -> Provider[Any]:
    arguments = _make_arguments(found, kind, spec)
    for takes_client, our_client in _CLIENT_FACTORIES.items():
        if takes_client in _init_parameters(found):
            ours: Any = (
                _make_openai_class(found, spec) if takes_client == _OPENAI_PARAMETER else found
            )
            found_out = ours(**arguments, http_client=_make_stub_client()).client
            if (client := our_client(found_out, spec)) is not None:
                return ours(**{takes_client: client})
            return ours(**arguments)
    return cast("Any", found)(**arguments)


def _make_stub_client() -> httpx2.AsyncClient:
    """Return a cheap client for a provider that is only read for its address and key."""
    return httpx2.AsyncClient(transport=httpx2.MockTransport(_fail_request), trust_env=False)


def _fail_request(request: httpx2.Request) -> httpx2.Response:
    raise AssertionError(f"nothing is sent with this client, but {request.url} was asked")


def _make_openai_client(client: AsyncOpenAI, spec: ModelSpec) -> AsyncOpenAI | None:
    from openai import AsyncOpenAI  # noqa: PLC0415  (an optional provider)

    from clew.agent.openai_client import OpenAIClient  # noqa: PLC0415  (as above)

    # Clients of other classes sign or address their requests differently.
    if type(client) is not AsyncOpenAI:
        return None
    return OpenAIClient(
        base_url=client.base_url,
        api_key=client.api_key,
        default_headers=_get_custom_headers(client),
        timeout=spec.timeout,
        max_retries=0,
        http_client=TolerantClient(),
    )


def _get_custom_headers(client: Any) -> Any:
    """Return the headers that a provider adds; the SDK has no public name for them."""
    return client._custom_headers  # noqa: SLF001


def _make_anthropic_client(client: AsyncAnthropic, spec: ModelSpec) -> AsyncAnthropic:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  (an optional provider)

    return AsyncAnthropic(
        base_url=client.base_url,
        api_key=client.api_key,
        timeout=spec.timeout,
        max_retries=0,
        http_client=TolerantClient(),
    )


#: Factories of our clients, by the parameter for a ready client.
_CLIENT_FACTORIES: Final[dict[str, Callable[[Any, ModelSpec], Any]]] = {
    _OPENAI_PARAMETER: _make_openai_client,
    "anthropic_client": _make_anthropic_client,
}


def _make_arguments(found: type[Provider[Any]], kind: str, spec: ModelSpec) -> dict[str, object]:
    takes = _init_parameters(found)
    arguments: dict[str, object] = {}
    if name := next((name for name in _KEY_PARAMETERS if name in takes), None):
        arguments[name] = _choose_key(spec)
    elif spec.api_key is not None:
        raise SettingsError(_format_unsupported(spec, kind, "api_key", "it signs in by itself"))
    if name := next((name for name in _ADDRESS_PARAMETERS if name in takes), None):
        arguments[name] = spec.base_url
    elif spec.base_url is not None and not _has_address_property(found):
        raise SettingsError(_format_unsupported(spec, kind, "base_url", "it has one address only"))
    return {name: value for name, value in arguments.items() if value is not None}


def _format_unsupported(spec: ModelSpec, kind: str, key: str, why: str) -> str:
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
