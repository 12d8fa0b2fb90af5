"""Settings of plugins in ``config.yaml`` and ``.env`` (``hermes_cli.config``)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast


def get_hermes_home() -> Path:
    """Return the folder of the two files."""
    return Path(os.environ["HERMES_HOME"])


def get_config_path() -> Path:
    """Return the path of ``config.yaml``."""
    return get_hermes_home() / "config.yaml"


def get_env_path() -> Path:
    """Return the path of ``.env``."""
    return get_hermes_home() / ".env"


def load_config() -> dict[str, Any]:
    """Return what ``config.yaml`` holds; nothing if it is not there or cannot be read."""
    import yaml  # noqa: PLC0415  (few plugins ask for it)

    try:
        found: object = yaml.safe_load(get_config_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def cfg_get(config: Any, *keys: str, default: Any = None) -> Any:
    """Return the value behind some keys; the default where one of them is missing."""
    found = config
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            return default
        found = cast("dict[str, Any]", found)[key]
    return found


def get_env_value(key: str, default: str | None = None) -> str | None:
    """Return an environment variable, which ``.env`` may have set at the start."""
    return os.environ.get(key, default)


def save_env_value(key: str, value: str) -> None:
    """Set a variable in ``.env``, which only its owner can read, and in this process."""
    if not key.isidentifier() or "\n" in value:
        raise ValueError(f"{key!r} and its value must be on one line")
    path = get_env_path()
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [line for line in lines if line.removeprefix("export ").partition("=")[0].strip() != key]
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.write("\n".join([*kept, f"{key}={value}", ""]))
    new.replace(path)
    os.environ[key] = value
