"""Load the settings once, from flags, environment, file and defaults."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.config import defaults, sources
from clew.config.builder import SettingsBuilder, find_literal_secrets
from clew.config.fields import ENV_PREFIX, env_name
from clew.config.lookup import CORE_CATALOG
from clew.config.model_access import iter_address_warnings
from clew.config.secret import Secret
from clew.config.settings import ModelSettings, Settings
from clew.errors import SettingsError
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.config.lookup import SettingsCatalog

HOME_VARIABLE: Final = "CLEW_HOME"
FOLDERS: Final = ("plugins", "skills", "memory", "logs", "run")
_NO_FLAGS: Mapping[str, object] = MappingProxyType({})


def find_home(home: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the data folder: as given, ``CLEW_HOME``, or the platform's default."""
    chosen = home or (
        Path(environ[HOME_VARIABLE]) if environ.get(HOME_VARIABLE) else defaults.default_home()
    )
    return Path(os.path.abspath(chosen.expanduser()))  # noqa: PTH100  (keeps symbolic links)


def load_settings(
    *,
    home: Path | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
    environ: Mapping[str, str],
    catalog: SettingsCatalog = CORE_CATALOG,
) -> Settings:
    """
    Load all settings, those of the features in the ``catalog`` too.

    ``flags`` (``section.key``) take precedence over the environment, then ``config.toml``,
    then the defaults. Writes nothing to disk and reveals no secret: those are read when
    used.

    :raises SettingsError: naming every problem with its place
    """
    folder = find_home(home, environ)
    draft = _read_sources(folder, flags, environ, catalog)
    problems = draft.problems or _find_contradictions(draft)
    if problems:
        raise SettingsError(*problems)
    return _build_settings(draft, folder, environ, catalog)


def read_plugin_names(
    *,
    home: Path | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
    environ: Mapping[str, str],
) -> tuple[Sequence[str], Sequence[str]]:
    """
    Return ``plugins.enabled`` and ``features.disabled``, before anything else is known.

    Wrong values count as none: ``load_settings`` reports them.
    """
    draft = _read_sources(find_home(home, environ), flags, environ, CORE_CATALOG)
    return draft.build_section("plugins").enabled, draft.build_section("features").disabled


def _read_sources(
    home: Path, flags: Mapping[str, object], environ: Mapping[str, str], catalog: SettingsCatalog
) -> SettingsBuilder:
    draft = SettingsBuilder(home=home, environ=environ, catalog=catalog)
    draft.add_values(
        [
            *_read_file_values(home / "config.toml", draft.problems, catalog),
            *sources.read_environment(environ),
            *sources.read_flags(flags),
        ]
    )
    return draft


def _read_file_values(
    file: Path, problems: list[str], catalog: SettingsCatalog
) -> list[sources.RawValue]:
    try:
        return sources.read_config_file(
            file, sections=catalog.sections.keys(), named=catalog.named_fields
        )
    except SettingsError as error:
        problems += error.problems
        return []


def _build_settings(
    draft: SettingsBuilder, home: Path, environ: Mapping[str, str], catalog: SettingsCatalog
) -> Settings:
    if ("session", "timezone") not in draft.values:
        draft.values["session", "timezone"] = defaults.detect_timezone(environ)
    made = Settings(
        home=home,
        model=_build_model(draft, environ),
        agent=draft.build_section("agent"),
        store=draft.build_section("store"),
        api=draft.build_section("api"),
        session=draft.build_section("session"),
        compaction=draft.build_section("compaction"),
        lease=draft.build_section("lease"),
        providers=draft.build_providers(),
        channels=draft.build_channels(),
        tools=draft.build_section("tools"),
        sandbox=draft.build_section("sandbox"),
        approvals=draft.build_section("approvals"),
        plugins=draft.build_section("plugins"),
        features=draft.build_section("features"),
        sections=draft.build_feature_sections(),
        tables=draft.build_feature_tables(),
        origins=MappingProxyType(dict(draft.origins)),
    )
    return replace(
        made,
        warnings=(
            *_find_warnings(draft, home),
            *_find_near_misses(environ, catalog),
            *iter_address_warnings(made),
        ),
    )


def _build_model(draft: SettingsBuilder, environ: Mapping[str, str]) -> ModelSettings:
    """Return the model, chosen by the available keys if none is configured."""
    model: ModelSettings = draft.build_section("model")
    if origin := draft.origins.get("model.name"):
        model = replace(model, chosen_by=f"from {origin.place}")
    else:
        name, why = defaults.choose_default_model(environ)
        model = replace(model, name=name, chosen_by=why)
    own_table = model.name.partition(":")[0] in draft.build_providers()
    if model.api_key is None and model.base_url is None and not own_table:
        # A provider's key is sent to that provider only, never to another server.
        variable = defaults.find_key_variable(model.name, environ)
        if variable is not None:
            key = Secret.from_env(variable, key="model.api_key", environ=environ)
            model = replace(model, api_key=key)
    return model


def _find_contradictions(draft: SettingsBuilder) -> list[str]:
    """Return the problems of values that are valid on their own."""
    values, origins = draft.values, draft.origins
    found: list[str] = []
    if ("model", "name") not in values:
        found += [
            f"{origins[f'model.{name}'].place}: model.{name} says how to reach a model, but "
            'model.name does not say which: set it, for example name = "openai-chat:llama3"'
            for name in ("base_url", "api_key")
            if ("model", name) in values
        ]
    provider = str(values.get(("model", "name"), "")).partition(":")[0]
    found += [
        f"{origins[f'model.{name}'].place}: model.{name} and [providers.{provider}] are both set: "
        "keep one"
        for name in ("base_url", "api_key")
        if ("model", name) in values and provider in draft.build_providers()
    ]
    if ("agent", "instructions") in values and ("agent", "instructions_file") in values:
        found.append(
            f"{origins['agent.instructions_file'].place}: agent.instructions and "
            "agent.instructions_file are both set: keep one"
        )
    return found + _check_compaction(draft)


def _check_compaction(draft: SettingsBuilder) -> list[str]:
    section = draft.build_section("compaction")
    if section.keep_recent < section.threshold:
        return []
    return [
        (
            f"compaction.keep_recent ({section.keep_recent:g}) must be less than "
            f"compaction.threshold ({section.threshold:g}): else compaction cannot make room"
        )
    ]


def _find_warnings(draft: SettingsBuilder, home: Path) -> list[str]:
    file = home / "config.toml"
    kept = [".".join(path) for path in find_literal_secrets(draft.values)]
    in_file = [name for name in kept if draft.origins[name].kind == "file"]
    found: list[str] = []
    if in_file and _is_readable_by_others(file):
        found.append(
            f"{file} holds a secret ({', '.join(in_file)}) and others may read it: chmod 600 {file}"
        )
    return found


def _find_near_misses(environ: Mapping[str, str], catalog: SettingsCatalog) -> list[str]:
    """Return a warning for each variable that looks like a setting but lacks an underscore."""
    meant = {env_name(path).replace("_", ""): path for path in catalog.fields}
    return [
        f"the environment variable {name} is not read: {'.'.join(path)} is {env_name(path)}"
        for name in sorted(environ)
        if name.startswith(ENV_PREFIX)
        and "__" not in name
        and (path := meant.get(name.replace("_", "")))
        and env_name(path) != name
    ]


def _is_readable_by_others(file: Path) -> bool:
    return os.name == "posix" and bool(file.stat().st_mode & 0o077)


def ensure_home(settings: Settings) -> None:
    """
    Create ``CLEW_HOME`` and its folders for the user alone.

    Folders get mode 0700, ``config.toml`` 0600. Safe to call again at any time.

    :raises SettingsError: if a folder cannot be created
    """
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (home, *(home / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, exist_ok=True)
            _restrict_to_owner(folder, 0o700)
        if settings.config_file.exists():
            _restrict_to_owner(settings.config_file, 0o600)
    except OSError as error:
        raise SettingsError(
            f"{error.filename or home} cannot be made or kept private: {error.strerror}; name "
            f"another folder with --home or {HOME_VARIABLE}"
        ) from error


def _restrict_to_owner(path: Path, mode: int) -> None:
    """Remove others' permissions; a file of another user (a read-only mount) is left alone."""
    status = path.stat()
    if os.name == "posix" and status.st_mode & 0o077 and status.st_uid == os.getuid():
        path.chmod(mode & status.st_mode)
