"""The models: whether they can be used with these settings, and whether they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.agent.models import build_model, models_closed
from clew.agent.probe import probe
from clew.cli.doctoring.findings import fail, ok, warn
from clew.config.settings import OFFLINE
from clew.errors import SettingsError
from clew.runtime import model_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.cli.doctoring.findings import Finding
    from clew.config import Settings

#: Seconds that a provider may take for a few words.
PATIENCE: Final = 30.0


async def models(settings: Settings, *, offline: bool) -> AsyncIterator[Finding]:
    """The model and its stand-ins; asks each for a word unless ``offline``."""
    chosen = settings.model
    for number, name in enumerate((chosen.name, *chosen.fallback)):
        async with models_closed():
            finding = await _model(settings, name, asked=not offline, stands_in=number > 0)
        yield finding


async def _model(settings: Settings, name: str, *, asked: bool, stands_in: bool) -> Finding:
    what = "stand-in" if stands_in else "model"
    try:
        model = build_model(model_spec(settings, name))
    except SettingsError as error:
        return fail(what, str(error))
    if not asked or name == OFFLINE:
        return ok(what, f"{name} can be used; it was not asked")
    failure = await probe(model, patience=PATIENCE)
    if failure is None:
        return ok(what, f"{name} answers")
    detail = f"{name} does not answer: {failure.told}"
    fix = "check model.base_url and model.api_key, and whether the provider can be reached"
    return warn(what, detail, fix=fix) if stands_in else fail(what, detail, fix=fix)
