"""Address and key of each model: one rule for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.config.builtin_types import MODEL
from clew.config.fields import iter_setting_fields
from clew.config.introspection import iter_named_tables
from clew.config.settings import OFFLINE
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.secret import Secret
    from clew.config.settings import Settings

#: Prefixes that differ from their provider's only in the protocol.
_PROVIDER_ALIASES: Final = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure-responses": "azure",
}


class ModelAccess(Record):
    """The address and key of a model."""

    #: The settings table that holds them, or would.
    table: str
    base_url: str | None = None
    api_key: Secret | None = None


def resolve_access(settings: Settings, name: str) -> ModelAccess:
    """
    Return the address and key of a model.

    Its provider's own table decides, else ``[model]`` for every model of the same provider;
    for another one nothing is set, which leaves its public address and its key in the
    environment.
    """
    kind, main = _provider_prefix(name), _provider_prefix(settings.model.name)
    if (own := settings.providers.get(kind)) is not None:
        return ModelAccess(table=f"providers.{kind}", base_url=own.base_url, api_key=own.api_key)
    if _canonical_provider(kind) != _canonical_provider(main):
        return ModelAccess(table=f"providers.{kind}")
    if (shared := settings.providers.get(main)) is not None:
        return ModelAccess(
            table=f"providers.{main}", base_url=shared.base_url, api_key=shared.api_key
        )
    return ModelAccess(
        table="model", base_url=settings.model.base_url, api_key=settings.model.api_key
    )


def iter_named_models(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a model, also those of features; each name once."""
    named = [
        ("model.name", settings.model.name),
        *(("model.fallback", name) for name in settings.model.fallback),
        ("compaction.model", settings.compaction.model),
        ("session.title_model", settings.session.title_model),
        ("model.picture_model", settings.model.picture_model),
        *_iter_feature_models(settings),
    ]
    seen = set[str]()
    for setting, name in named:
        if name is not None and name not in seen:
            seen.add(name)
            yield setting, name


def _iter_feature_models(settings: Settings) -> Iterator[tuple[str, str | None]]:
    for table, section in (*settings.sections.items(), *iter_named_tables(settings)):
        for name, declared in iter_setting_fields(type(section)):
            if declared.kind is MODEL:
                yield f"{table}.{name}", getattr(section, name)


def iter_address_warnings(settings: Settings) -> Iterator[str]:
    """Yield a warning for each model whose address does not match its name."""
    main = _provider_prefix(settings.model.name)
    for setting, name in iter_named_models(settings):
        access, kind = resolve_access(settings, name), _provider_prefix(name)
        if access.base_url is not None and kind not in (main, access.table.rpartition(".")[2]):
            yield (
                f"{setting} {name!r} is asked at {access.table}.base_url, as {kind} and {main} are "
                f"one provider; for its public address write [providers.{kind}] with an api_key"
            )


def is_offline_only(settings: Settings) -> bool:
    """Return whether only the built-in model is configured."""
    names = {name for _, name in iter_named_models(settings)}
    return names == {OFFLINE} and not settings.providers


def _provider_prefix(name: str) -> str:
    return name.partition(":")[0]


def _canonical_provider(kind: str) -> str:
    return _PROVIDER_ALIASES.get(kind, kind)
