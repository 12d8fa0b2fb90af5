"""Flags, environment, file and defaults meet here, once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.config import machine, sources
from clew.config.build import Draft, literal_secrets
from clew.config.keys import PREFIX, env_name
from clew.config.model_access import shared_addresses
from clew.config.secret import Secret
from clew.config.settings import ModelSettings, Settings
from clew.config.slots import KEYS
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME: Final = "CLEW_HOME"
FOLDERS: Final = ("plugins", "skills", "memory", "logs", "run")
_NO_FLAGS: Mapping[str, object] = MappingProxyType({})


def find_home(home: Path | None, environ: Mapping[str, str]) -> Path:
    """The folder that holds everything: as asked for, ``CLEW_HOME``, or the platform's."""
    chosen = home or (Path(environ[HOME]) if environ.get(HOME) else machine.default_home())
    return Path(os.path.abspath(chosen.expanduser()))  # noqa: PTH100  (links stay as they are)


def load(
    *,
    home: Path | None = None,
    flags: Mapping[str, object] = _NO_FLAGS,
    environ: Mapping[str, str],
) -> Settings:
    """
    Read all settings: ``flags`` (``section.key``) before the environment, before
    ``config.toml``, before the defaults.

    Changes nothing on disk and reveals no secret: those are read at use.

    :raises SettingsError: naming every problem with its place
    """
    folder = find_home(home, environ)
    draft = Draft(home=folder, environ=environ)
    draft.take(
        [
            *_from_file(folder / "config.toml", draft.problems),
            *sources.from_environment(environ),
            *sources.from_flags(flags),
        ]
    )
    problems = draft.problems or _contradictions(draft)
    if problems:
        raise SettingsError(*problems)
    return _settings(draft, folder, environ)


def _from_file(file: Path, problems: list[str]) -> list[sources.Given]:
    try:
        return sources.from_file(file)
    except SettingsError as error:
        problems += error.problems
        return []


def _settings(draft: Draft, home: Path, environ: Mapping[str, str]) -> Settings:
    if ("session", "timezone") not in draft.values:
        draft.values["session", "timezone"] = machine.local_timezone(environ)
    made = Settings(
        home=home,
        model=_model(draft, environ),
        agent=draft.section("agent"),
        store=draft.section("store"),
        api=draft.section("api"),
        session=draft.section("session"),
        compaction=draft.section("compaction"),
        lease=draft.section("lease"),
        providers=draft.providers(),
        channels=draft.channels(),
        tools=draft.section("tools"),
        plugins=draft.section("plugins"),
        origins=MappingProxyType(dict(draft.origins)),
    )
    return replace(made, warnings=(*_warnings(draft, home, environ), *shared_addresses(made)))


def _model(draft: Draft, environ: Mapping[str, str]) -> ModelSettings:
    """The model, chosen by the keys at hand where none is configured."""
    model: ModelSettings = draft.section("model")
    if origin := draft.origins.get("model.name"):
        model = replace(model, chosen_by=f"from {origin.place}")
    else:
        name, why = machine.choose_model(environ)
        model = replace(model, name=name, chosen_by=why)
    own_table = model.name.partition(":")[0] in draft.providers()
    if model.api_key is None and model.base_url is None and not own_table:
        # A provider's key goes to that provider only, never to another server.
        variable = machine.key_variable(model.name, environ)
        if variable is not None:
            key = Secret.from_env(variable, key="model.api_key", environ=environ)
            model = replace(model, api_key=key)
    return model


def _contradictions(draft: Draft) -> list[str]:
    """What is wrong with values that are right by themselves."""
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
        if ("model", name) in values and provider in draft.providers()
    ]
    if ("agent", "instructions") in values and ("agent", "instructions_file") in values:
        found.append(
            f"{origins['agent.instructions_file'].place}: agent.instructions and "
            "agent.instructions_file are both set: keep one"
        )
    return found + _compaction(draft)


def _compaction(draft: Draft) -> list[str]:
    section = draft.section("compaction")
    if section.keep_recent < section.threshold:
        return []
    return [
        (
            f"compaction.keep_recent ({section.keep_recent:g}) must be less than "
            f"compaction.threshold ({section.threshold:g}): else compaction cannot make room"
        )
    ]


def _warnings(draft: Draft, home: Path, environ: Mapping[str, str]) -> list[str]:
    file = home / "config.toml"
    kept = [".".join(path) for path in literal_secrets(draft.values)]
    in_file = [name for name in kept if draft.origins[name].kind == "file"]
    found: list[str] = []
    if in_file and _others_may_read(file):
        found.append(
            f"{file} holds a secret ({', '.join(in_file)}) and others may read it: chmod 600 {file}"
        )
    return found + _near_misses(environ)


def _near_misses(environ: Mapping[str, str]) -> list[str]:
    """Variables that look like a setting but miss an underscore."""
    meant = {env_name(path).replace("_", ""): path for path in KEYS}
    return [
        f"the environment variable {name} is not read: {'.'.join(path)} is {env_name(path)}"
        for name in sorted(environ)
        if name.startswith(PREFIX)
        and "__" not in name
        and (path := meant.get(name.replace("_", "")))
        and env_name(path) != name
    ]


def _others_may_read(file: Path) -> bool:
    return os.name == "posix" and bool(file.stat().st_mode & 0o077)


def ensure_home(settings: Settings) -> None:
    """
    Make ``CLEW_HOME`` and its folders, for the user alone (0700); ``config.toml`` becomes 0600.

    May be called again at any time.

    :raises SettingsError: if a folder cannot be made
    """
    home = settings.home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (home, *(home / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, exist_ok=True)
            _keep_to_owner(folder, 0o700)
        if settings.config_file.exists():
            _keep_to_owner(settings.config_file, 0o600)
    except OSError as error:
        raise SettingsError(
            f"{error.filename or home} cannot be made or kept private: {error.strerror}; name "
            f"another folder with --home or {HOME}"
        ) from error


def _keep_to_owner(path: Path, mode: int) -> None:
    """Take others' rights away; a file of somebody else (a read-only mount) stays as it is."""
    status = path.stat()
    if os.name == "posix" and status.st_mode & 0o077 and status.st_uid == os.getuid():
        path.chmod(mode & status.st_mode)
