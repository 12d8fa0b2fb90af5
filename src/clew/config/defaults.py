"""Defaults that depend on the machine: the model, its key, the time zone, the home."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.config.settings import OFFLINE
from clew.distribution import format_install_command
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class DefaultProvider(Record):
    """A provider whose key may be in the environment."""

    variable: str
    #: Its client package.
    package: str
    #: Its default model.
    model: str


#: In order of preference.
DEFAULT_PROVIDERS: Final = (
    DefaultProvider(variable="OPENAI_API_KEY", package="openai", model="openai:gpt-5-mini"),
    DefaultProvider(
        variable="ANTHROPIC_API_KEY", package="anthropic", model="anthropic:claude-sonnet-5"
    ),
)
_KEY_VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}


def _is_package_installed(package: str) -> bool:
    return find_spec(package) is not None


def choose_default_model(
    environ: Mapping[str, str], *, installed: Callable[[str], bool] = _is_package_installed
) -> tuple[str, str]:
    """Return the model to use when none is configured, and why."""
    with_key = [provider for provider in DEFAULT_PROVIDERS if environ.get(provider.variable)]
    for provider in with_key:
        if installed(provider.package):
            return provider.model, f"{provider.variable} is in the environment"
    if with_key:
        first = with_key[0]
        return OFFLINE, (
            f"{first.variable} is in the environment, but the package for {first.model} is not "
            f"installed ({format_install_command(first.package)})"
        )
    variables = " nor ".join(provider.variable for provider in DEFAULT_PROVIDERS)
    return OFFLINE, (
        f"no model is configured and neither {variables} is in the environment: "
        "clew setup chooses one"
    )


def find_key_variable(model: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable that holds the key of a model's own provider."""
    variable = _KEY_VARIABLES.get(model.partition(":")[0])
    return variable if variable and environ.get(variable) else None


def detect_timezone(environ: Mapping[str, str]) -> str:
    """Return the name of the machine's time zone, else UTC."""
    named = environ.get("TZ", "").lstrip(":")
    target = Path("/etc/localtime").resolve().as_posix().partition("/zoneinfo/")[2]
    for name in (named, target):
        if name and _timezone_exists(name):
            return name
    return "UTC"


def _timezone_exists(zone: str) -> bool:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  (not needed to print a version or help)

    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return False
    return True


def default_home() -> Path:
    """Return the platform's folder for user data."""
    import platformdirs  # noqa: PLC0415  (not needed where the home is named)

    return platformdirs.user_data_path("clew", appauthor=False)
