"""Steps of the setup: find, choose, test, write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent.provider_errors import FailureKind
from clew.cli.doctor_checks import host
from clew.cli.setup_wizard.connection_check import ConnectionTarget, check_connection_sync
from clew.cli.setup_wizard.model_selection import ModelSelector
from clew.config import ensure_home, load_settings
from clew.config.settings import OFFLINE, ApiSettings, Settings
from clew.config.sources import read_config_file
from clew.config.toml_edit import BACKUP_NAME, atomic_write, edit_toml, quote_toml
from clew.core.doctor_finding import FindingLevel
from clew.errors import ClewError, SettingsError, UsageError
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.cli.setup_wizard.connection_check import ConnectionProblem
    from clew.cli.setup_wizard.options import SelectedModel, SetupOptions
    from clew.cli.setup_wizard.prompts import Prompter


class SetupCancelled(Exception):
    """The user wants nothing changed, which is no failure; the text describes the state."""


class SetupResult(Record):
    """The result of the setup."""

    chosen: SelectedModel
    settings: Settings
    tested: bool
    #: The copy of the previous ``config.toml``, if there was one.
    previous_config: Path | None
    #: Problems, and how to fix them.
    warnings: tuple[str, ...]


def run_setup(
    home: Path, wishes: SetupOptions, environ: Mapping[str, str], person: Prompter
) -> SetupResult:
    """
    Find a model that answers and write it to the settings.

    :raises ClewError: with what to do; the settings are unchanged then
    :raises SetupCancelled: if the user wants nothing changed
    """
    before = _read_current_config(home / "config.toml", wishes, person)
    ensure_home(Settings(home=home))
    _raise_if_failed(host.check_disk(home))
    if wishes.port is not None:
        _raise_if_failed(host.check_port(ApiSettings(port=wishes.port)))
    chosen = _select_working_model(home, wishes, environ, person)
    _write_config(home, before, chosen, wishes.port)
    settings = load_settings(home=home, environ=environ)
    return SetupResult(
        chosen=chosen,
        settings=settings,
        tested=_should_test(chosen, wishes),
        previous_config=home / BACKUP_NAME if before else None,
        warnings=tuple(_find_warnings(settings, chosen)),
    )


def _read_current_config(file: Path, wishes: SetupOptions, person: Prompter) -> str:
    """Return the text of ``config.toml``, if it may be changed."""
    try:
        read_config_file(file)
    except SettingsError as error:
        raise UsageError(f"{error}; fix it, or move it away and run setup again") from error
    if not file.exists():
        return ""
    if not wishes.replace and not person.confirm(f"{file} exists already. Change its model?"):
        if person.is_interactive:
            raise SetupCancelled(f"{file} was not changed: clew chat uses its model")
        raise UsageError(
            f"{file} exists already and was not changed: pass --replace to change its model (a "
            f"copy stays as {BACKUP_NAME}, and all other settings), or edit it"
        )
    return file.read_text(encoding="utf-8")


def _raise_if_failed(finding: host.DoctorFinding) -> None:
    if finding.level is FindingLevel.FAIL:
        raise ClewError(f"{finding.detail}: {finding.fix}")


def _select_working_model(
    home: Path, wishes: SetupOptions, environ: Mapping[str, str], person: Prompter
) -> SelectedModel:
    """Return a model that answered, or one whose test was skipped."""
    chooser = ModelSelector(home, wishes, environ, person)
    chosen = chooser.select_model()
    while _should_test(chosen, wishes):
        person.print_note(f"asking {chosen.name} for a test answer …")
        trouble = check_connection_sync(_connection_target(chosen, environ))
        if trouble is None:
            break
        if not person.is_interactive:
            raise ClewError(trouble.message)
        person.notes.write(f"clew: {trouble.message}\n")
        wishes = replace(wishes, model=None, base_url=None)
        chosen = _select_again(
            ModelSelector(home, wishes, environ, person), chosen, trouble, person
        )
    return chosen


def _should_test(chosen: SelectedModel, wishes: SetupOptions) -> bool:
    return wishes.test and chosen.name != OFFLINE


def _connection_target(chosen: SelectedModel, environ: Mapping[str, str]) -> ConnectionTarget:
    return ConnectionTarget(
        name=chosen.name,
        base_url=chosen.base_url,
        key=chosen.key.reveal(environ) if chosen.key else None,
        key_location=chosen.key.description if chosen.key else "",
    )


def _select_again(
    chooser: ModelSelector, chosen: SelectedModel, trouble: ConnectionProblem, person: Prompter
) -> SelectedModel:
    """Return the model to test next, as the user chooses."""
    by_key = trouble.kind is FailureKind.AUTH
    first = "type a key" if by_key else "try again"
    match person.choose_option("What now?", [first, "choose something else", "change nothing"]):
        case 0:
            return chooser.prompt_new_key(chosen) if by_key else chosen
        case 1:
            return chooser.select_model()
        case _:
            raise SetupCancelled("nothing was changed: run clew setup again at any time")


def _write_config(home: Path, before: str, chosen: SelectedModel, port: int | None) -> None:
    changes = {
        ("model", "name"): quote_toml(chosen.name),
        ("model", "base_url"): quote_toml(chosen.base_url) if chosen.base_url else None,
        ("model", "api_key"): chosen.key.to_toml(home) if chosen.key else None,
        # The old value belongs to another model.
        ("model", "context_window"): None,
    }
    if port is not None:
        changes["api", "port"] = str(port)
    after = edit_toml(before, changes)
    if before:
        atomic_write(home / BACKUP_NAME, before)
    atomic_write(home / "config.toml", after)


def _find_warnings(settings: Settings, chosen: SelectedModel) -> list[str]:
    found = list(settings.warnings)
    if settings.model.name != chosen.name:
        place = settings.origins["model.name"].place
        found.append(f"{place} overrides the file and names {settings.model.name}: unset it")
    port = host.check_port(settings.api)
    if port.level is FindingLevel.FAIL:
        found.append(f"clew serve cannot start: {port.detail}; {port.fix} (clew setup --port)")
    return found
