"""Models: from a setting to something that answers."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model

from clew.agent.alternation import send_alternating
from clew.agent.offline import NAME as OFFLINE
from clew.agent.offline import offline_model
from clew.agent.providers import finish_model, make_provider
from clew.agent.start_problems import refuse_unusable_key, refuse_unusable_surroundings
from clew.distribution import format_install_command
from clew.errors import SettingsError
from clew.imports import hide_modules, lazy_packages

__all__ = ["Model", "ModelSpec", "build_model", "models_closed", "name_of"]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator


#: Where the models are kept that are built from here on; also by tasks that are started later.
_keeper: ContextVar[list[Model] | None] = ContextVar("models", default=None)


#: Keeps, on a model, how a setting named it: the library tells several providers by one name.
_NAMED = "_clew_name"

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
    #: The setting that names it, and the table with its place and key; for messages.
    setting: str = "model.name"
    table: str = "model"


def build_model(spec: ModelSpec) -> Model:
    """
    The model that a setting names.

    The provider's own retries are off: attempts are counted and stored with the turn.

    :raises SettingsError: if there is no such provider, its package is missing, it has no key or
        one that cannot be sent, or a proxy or certificates in the environment cannot be used
    """
    model = _built(spec)
    if not model.profile.get("supports_text_output", True):
        raise SettingsError(
            f"{spec.setting} {spec.name!r} cannot be used: it decides and does not answer in text"
        )
    vars(model)[_NAMED] = spec.name
    send_alternating(model)
    if (keeper := _keeper.get()) is not None:
        keeper.append(model)
    return model


def name_of(model: Model) -> str:
    """How a setting names a model: ``PROVIDER:MODEL``."""
    if (named := vars(model).get(_NAMED)) is not None:
        return named
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
    refuse_unusable_surroundings()
    refuse_unusable_key(spec.api_key, setting=f"{spec.table}.api_key")
    try:
        with _openai_as_used():
            model = infer_model(spec.name, lambda kind: make_provider(kind, spec))
    except ImportError as error:
        raise SettingsError(
            f"{spec.setting} {spec.name!r} needs a package that is not installed: "
            f"{_install_command(_extra(error, provider))}"
        ) from error
    # The library raises a plain ValueError for a provider that it does not know.
    except (UserError, ValueError) as error:
        raise _unusable(spec, error) from error
    finish_model(model, spec)
    return model


def _extra(error: ImportError, provider: str) -> str:
    """Return the part of the library that an import wants."""
    wanted = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    return wanted[1] if wanted else provider


def _unusable(spec: ModelSpec, error: Exception) -> SettingsError:
    """Return what is wrong with a model, and the setting that mends it."""
    if variable := re.search(r"\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN)\b", str(error)):
        return SettingsError(
            f"{spec.setting} is {spec.name!r} but there is no key for it: set "
            f"{spec.table}.api_key, or {variable[0]} in the environment"
        )
    if variable := re.search(r"\b[A-Z][A-Z0-9_]*(?:URL|ENDPOINT)\b", str(error)):
        return SettingsError(
            f"{spec.setting} is {spec.name!r} but its address is not known: set "
            f"{spec.table}.base_url, or {variable[0]} in the environment"
        )
    return SettingsError(f"{spec.setting} {spec.name!r} cannot be used: {error}")


@contextmanager
def _openai_as_used() -> Generator[None]:
    """Import of the SDK what is used: not its transport over aiohttp, no types of other APIs."""
    with hide_modules("openai._vendor.httpx_aiohttp"), lazy_packages(*_TYPES):
        yield


#: Providers whose package is an extra of this distribution; the model library brings the others.
_OWN_EXTRAS = frozenset({"anthropic"})


def _install_command(provider: str) -> str:
    """Return the command that installs what a provider needs."""
    if provider in _OWN_EXTRAS:
        return format_install_command(provider)
    return f"pip install 'pydantic-ai-slim[{provider}]'"
