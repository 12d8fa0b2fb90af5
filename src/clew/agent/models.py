"""Models: from a setting to something that answers."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import infer_provider

from clew.agent.failures import never_tell
from clew.agent.offline import NAME as OFFLINE
from clew.agent.offline import offline_model
from clew.distribution import install_command
from clew.errors import SettingsError
from clew.imports import on_demand, without

__all__ = ["Model", "ModelSpec", "build_model", "models_closed", "name_of"]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers import Provider


#: Where the models are kept that are built from here on; also by tasks that are started later.
_keeper: ContextVar[list[Model] | None] = ContextVar("models", default=None)


#: A fifth of all that the server imports, if they are imported as a whole.
_TYPES = ("openai.types", "openai.types.chat", "openai.types.responses")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """Which model, where it is served and how long it may take."""

    #: A Pydantic AI model string such as ``openai-chat:llama3``, or ``offline``.
    name: str
    base_url: str | None = None
    api_key: str | None = None
    #: Seconds without a sign of life from the provider.
    timeout: float = 120.0


def build_model(spec: ModelSpec) -> Model:
    """
    The model that a setting names.

    The provider's own retries are off: attempts are counted and stored with the turn.

    :raises SettingsError: if there is no such provider, its package is missing, or it has no key
    """
    model = _built(spec)
    if (keeper := _keeper.get()) is not None:
        keeper.append(model)
    return model


def name_of(model: Model) -> str:
    """How a setting names a model: ``PROVIDER:MODEL``."""
    if model.model_name == OFFLINE:
        return OFFLINE
    # The two ways to ask OpenAI are one provider to the library.
    chat = type(model).__name__ == "OpenAIChatModel" and model.system == "openai"
    return f"{'openai-chat' if chat else model.system}:{model.model_name}"


@asynccontextmanager
async def models_closed() -> AsyncGenerator[None]:
    """Close, in the end, the connections of every model that was built inside."""
    keeper: list[Model] = []
    before = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(before)
        for model in keeper:
            close = getattr(getattr(model, "client", None), "close", None)
            if iscoroutinefunction(close):
                await close()


def _built(spec: ModelSpec) -> Model:
    if spec.name == OFFLINE:
        return offline_model()
    provider, _, name = spec.name.partition(":")
    if not name:
        raise SettingsError(
            f"the model {spec.name!r} names no provider: write PROVIDER:MODEL, for example "
            "openai-chat:llama3, or offline"
        )
    try:
        return _BUILDERS.get(provider, _other)(spec, name)
    except ImportError as error:
        raise SettingsError(
            f"model.name {spec.name!r} needs a package that is not installed ({error.name}): "
            f"{_install_command(provider)}"
        ) from error
    # The library raises a plain ValueError for a provider that it does not know.
    except (UserError, ValueError) as error:
        raise SettingsError(f"model.name {spec.name!r} cannot be used: {error}") from error


@contextmanager
def _openai_as_used() -> Generator[None]:
    """Import of the SDK what is used: not its transport over aiohttp, no types of other APIs."""
    with without("openai._vendor.httpx_aiohttp"), on_demand(*_TYPES):
        yield


def _openai_chat(spec: ModelSpec, name: str) -> Model:
    with _openai_as_used():
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  (optional)

    return OpenAIChatModel(name, provider=_openai_provider(spec), profile=_openai_profile(spec))


def _openai_responses(spec: ModelSpec, name: str) -> Model:
    with _openai_as_used():
        from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415  (optional)

    return OpenAIResponsesModel(
        name, provider=_openai_provider(spec), profile=_openai_profile(spec)
    )


def _openai_profile(spec: ModelSpec) -> OpenAIModelProfile:
    from pydantic_ai.profiles.openai import (  # noqa: PLC0415  (an optional provider)
        OpenAIModelProfile,
    )

    # A stream without a finish reason was cut, however cleanly it ended.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    if spec.base_url is not None:
        # Servers that speak the protocol without being OpenAI reject strict tool schemas.
        profile["openai_supports_strict_tool_definition"] = False
    return profile


def _openai_provider(spec: ModelSpec) -> Provider[Any]:
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  (an optional provider)

    from clew.agent.openai_client import OpenAIClient  # noqa: PLC0415  (as above)

    # A server of one's own often wants no key, but the client insists on one.
    key = spec.api_key or ("none" if spec.base_url else None)
    try:
        client = OpenAIClient(
            base_url=spec.base_url, api_key=key, timeout=spec.timeout, max_retries=0
        )
    except Exception as error:
        raise _no_key(spec, "OPENAI_API_KEY") from error
    never_tell(client.api_key)
    return OpenAIProvider(openai_client=client)


def _anthropic(spec: ModelSpec, name: str) -> Model:
    from anthropic import AsyncAnthropic  # noqa: PLC0415  (an optional provider)
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  (as above)
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415  (as above)

    key = spec.api_key or ("none" if spec.base_url else None)
    client = AsyncAnthropic(
        base_url=spec.base_url, api_key=key, timeout=spec.timeout, max_retries=0
    )
    if client.api_key is None:
        raise _no_key(spec, "ANTHROPIC_API_KEY")
    never_tell(client.api_key)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def _other(spec: ModelSpec, name: str) -> Model:
    def provider(provider_name: str) -> Provider[Any]:
        found = infer_provider(provider_name)
        client = getattr(found, "client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0  # pyright: ignore[reportOptionalMemberAccess]
        never_tell(getattr(client, "api_key", None))
        return found

    return infer_model(spec.name, provider)


#: Providers whose package is an extra of this distribution; the model library brings the others.
_OWN_EXTRAS = frozenset({"anthropic"})


def _install_command(provider: str) -> str:
    """Return the command that installs what a provider needs."""
    if provider in _OWN_EXTRAS:
        return install_command(provider)
    return f"pip install 'pydantic-ai-slim[{provider}]'"


def _no_key(spec: ModelSpec, variable: str) -> SettingsError:
    return SettingsError(
        f"model.name is {spec.name!r} but there is no key for it: "
        f"set model.api_key, or {variable} in the environment"
    )


_BUILDERS: dict[str, Callable[[ModelSpec, str], Model]] = {
    "openai": _openai_responses,
    "openai-chat": _openai_chat,
    "anthropic": _anthropic,
}
