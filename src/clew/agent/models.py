"""Construction of models from settings."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, get_args

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import KnownModelName, Model, infer_model

from clew.agent.alternation import enforce_alternation
from clew.agent.model_spec import ModelSpec
from clew.agent.offline import OFFLINE_NAME as OFFLINE
from clew.agent.offline import make_offline_model
from clew.agent.preflight import check_key_sendable, check_network_environment
from clew.agent.providers import configure_client, make_provider
from clew.agent.schema_cache import cache_schemas
from clew.distribution import format_install_command
from clew.errors import SettingsError
from clew.lazy_imports import hide_modules, lazy_packages

__all__ = ["Model", "ModelSpec", "build_model", "close_models_on_exit", "get_qualified_name"]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator


#: Collects the models built from here on, also by tasks started later.
_built_models: ContextVar[list[Model] | None] = ContextVar("models", default=None)


#: Attribute of a model with its name in the settings: the library merges several providers.
_NAME_ATTRIBUTE = "_clew_name"

#: Imported as a whole, they are a fifth of all that the server imports.
_TYPE_PACKAGES = ("openai.types", "openai.types.chat", "openai.types.responses")


def build_model(spec: ModelSpec) -> Model:
    """
    Return the model that a setting names.

    The provider's own retries are off: attempts are counted and stored with the turn.

    :raises SettingsError: if the provider or its package is missing, it has no key
        or one that cannot be sent, or proxy or certificates in the environment are wrong
    """
    model = _infer_model(spec)
    if not model.profile.get("supports_text_output", True):
        raise SettingsError(
            f"{spec.setting} {spec.name!r} cannot be used: it decides and does not answer in text"
        )
    vars(model)[_NAME_ATTRIBUTE] = spec.name
    enforce_alternation(model)
    cache_schemas(model)
    if (keeper := _built_models.get()) is not None:
        keeper.append(model)
    return model


def get_qualified_name(model: Model) -> str:
    """Return the name of a model in settings: ``PROVIDER:MODEL``."""
    if (named := vars(model).get(_NAME_ATTRIBUTE)) is not None:
        return named
    if model.model_name == OFFLINE:
        return OFFLINE
    # OpenAI's two APIs are one provider to the library.
    chat = type(model).__name__ == "OpenAIChatModel" and model.system == "openai"
    return f"{'openai-chat' if chat else model.system}:{model.model_name}"


@asynccontextmanager
async def close_models_on_exit() -> AsyncGenerator[None]:
    """Close the connections of every model built in the block."""
    keeper: list[Model] = []
    before = _built_models.set(keeper)
    try:
        yield
    finally:
        _built_models.reset(before)
        for model in keeper:
            close = getattr(getattr(model, "client", None), "close", None)
            if iscoroutinefunction(close):
                await close()


def _infer_model(spec: ModelSpec) -> Model:
    if spec.name == OFFLINE:
        return make_offline_model()
    provider, _, name = spec.name.partition(":")
    if not name:
        raise SettingsError(
            f"the model {spec.name!r} names no provider: write PROVIDER:MODEL, for example "
            "openai-chat:llama3, or offline"
        )
    check_network_environment()
    check_key_sendable(spec.api_key, setting=f"{spec.table}.api_key")
    try:
        with _limit_openai_imports():
            model = infer_model(spec.name, lambda kind: make_provider(kind, spec))
    except ImportError as error:
        raise SettingsError(
            f"{spec.setting} {spec.name!r} needs a package that is not installed: "
            f"{_format_install_command(_find_missing_extra(error, provider))}"
        ) from error
    # The library raises a plain ValueError for an unknown provider.
    except (UserError, ValueError) as error:
        raise _explain_unusable(spec, error) from error
    configure_client(model, spec)
    return model


def _find_missing_extra(error: ImportError, provider: str) -> str:
    """Return the extra of the library that an import needs."""
    wanted = re.search(r"pydantic-ai-slim\[([\w-]+)\]", str(error))
    return wanted[1] if wanted else provider


def _explain_unusable(spec: ModelSpec, error: Exception) -> SettingsError:
    """Return the error for an unusable model, with the setting that fixes it."""
    if variable := re.search(r"\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN)\b", str(error)):
        return SettingsError(
            f"{spec.setting} is {spec.name!r} but has no key: set {spec.table}.api_key, or "
            f"{variable[0]} in the environment"
        )
    if variable := re.search(r"\b[A-Z][A-Z0-9_]*(?:URL|ENDPOINT)\b", str(error)):
        return SettingsError(
            f"{spec.setting} is {spec.name!r} but its address is not known: set "
            f"{spec.table}.base_url, or {variable[0]} in the environment"
        )
    meant = _suggest_provider(spec.name)
    return SettingsError(f"{spec.setting} {spec.name!r} cannot be used: {error}{meant}")


def _suggest_provider(name: str) -> str:
    """Return a question for the provider that a misspelt one may be; "" if none is near."""
    provider, _, model = name.partition(":")
    known = {each.partition(":")[0] for each in get_args(KnownModelName.__value__)}
    near = get_close_matches(provider, sorted(known - {provider}), n=1)
    return f"; did you mean {near[0]}:{model}?" if near else ""


@contextmanager
def _limit_openai_imports() -> Generator[None]:
    """Skip the parts of the SDK that are not used: its aiohttp transport, types of other APIs."""
    with hide_modules("openai._vendor.httpx_aiohttp"), lazy_packages(*_TYPE_PACKAGES):
        yield


#: Providers whose package is an extra of this distribution; others are extras of the library.
_OWN_EXTRAS = frozenset({"anthropic"})


def _format_install_command(provider: str) -> str:
    """Return the command that installs a provider's package."""
    if provider in _OWN_EXTRAS:
        return format_install_command(provider)
    return f"pip install 'pydantic-ai-slim[{provider}]'"
