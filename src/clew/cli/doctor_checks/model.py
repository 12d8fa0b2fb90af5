"""Checks of the models: usable settings, and an answer from each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.agent.advice import ADVICE
from clew.agent.models import build_model, close_models_on_exit
from clew.agent.probe import probe_model
from clew.config.model_access import iter_named_models
from clew.config.settings import OFFLINE
from clew.core.doctor_finding import fail, ok, warn
from clew.errors import SettingsError
from clew.runtime import find_unknown_providers, make_model_spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding

#: The label of each setting of the core that names a model; those of features are their own.
_LABELS: Final = {
    "model.name": "model",
    "model.fallback": "stand-in",
    "compaction.model": "summariser",
    "session.title_model": "titler",
}
#: The settings of models that answer people: their replies are streamed.
_STREAMED: Final = frozenset({"model.name", "model.fallback"})
#: Seconds to wait for a short answer.
TIMEOUT: Final = 30.0


async def check_models(settings: Settings, *, offline: bool) -> AsyncIterator[DoctorFinding]:
    """Check every model that the settings name; send each a request unless ``offline``."""
    for problem in find_unknown_providers(settings):
        yield fail("providers", problem)
    for setting, name in iter_named_models(settings):
        if setting == "model.name" and name == OFFLINE:
            continue
        async with close_models_on_exit():
            finding = await _check_model(settings, name, setting, asked=not offline)
        yield finding


async def _check_model(
    settings: Settings, name: str, setting: str, *, asked: bool
) -> DoctorFinding:
    what = _LABELS.get(setting, setting)
    try:
        spec = make_model_spec(settings, name, setting=setting)
        model = build_model(spec)
    except SettingsError as error:
        return fail(what, str(error))
    if not asked or name == OFFLINE:
        return ok(what, f"{name} can be used; no test request was sent")
    failure = await probe_model(model, patience=TIMEOUT, streamed=setting in _STREAMED)
    if failure is None:
        return ok(what, f"{name} answers")
    detail = f"{name} does not answer: {failure.user_message}"
    fix = ADVICE[failure.kind].text.removesuffix(".")
    for key in ("base_url", "api_key"):
        fix = fix.replace(f"model.{key}", f"{spec.table}.{key}")
    needed = setting == "model.name"
    return fail(what, detail, fix=fix) if needed else warn(what, detail, fix=fix)
