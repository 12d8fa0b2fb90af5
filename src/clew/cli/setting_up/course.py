"""The course of the first run: find, choose, try, write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.agent.failures import FailureKind
from clew.cli.doctoring import machine
from clew.cli.doctoring.findings import Level
from clew.cli.setting_up.choosing import Chooser
from clew.cli.setting_up.trial import Choice, ask_once
from clew.config import ensure_home, load_settings
from clew.config.settings import OFFLINE, ApiSettings, Settings
from clew.config.sources import read_config_file
from clew.config.writing import BACKUP_NAME, atomic_write, edit_toml, quote_toml
from clew.errors import ClewError, SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.cli.setting_up.person import Person
    from clew.cli.setting_up.trial import Trouble
    from clew.cli.setting_up.wishes import Chosen, Wishes


class LeftAsItIs(Exception):
    """The person wants nothing changed, which is no failure; the text says how things are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """How it is set up now."""

    chosen: Chosen
    settings: Settings
    tested: bool
    #: Where the file of before is kept, if there was one.
    before: Path | None
    #: What is not as it should be, and what to do about it.
    warnings: tuple[str, ...]


def set_up(home: Path, wishes: Wishes, environ: Mapping[str, str], person: Person) -> Done:
    """
    Find a model that answers and write it down.

    :raises ClewError: with what to do; the settings are as they were then
    :raises LeftAsItIs: if the person wants that
    """
    before = _before(home / "config.toml", wishes, person)
    ensure_home(Settings(home=home))
    _refuse(machine.disk(home))
    if wishes.port is not None:
        _refuse(machine.port(ApiSettings(port=wishes.port)))
    chosen = _answering(home, wishes, environ, person)
    _write(home, before, chosen, wishes.port)
    settings = load_settings(home=home, environ=environ)
    return Done(
        chosen=chosen,
        settings=settings,
        tested=_is_tested(chosen, wishes),
        before=home / BACKUP_NAME if before else None,
        warnings=tuple(_warnings(settings, chosen)),
    )


def _before(file: Path, wishes: Wishes, person: Person) -> str:
    """What the file says, if it may be changed."""
    try:
        read_config_file(file)
    except SettingsError as error:
        raise UsageError(f"{error}; mend it, or move it away and run setup again") from error
    if not file.exists():
        return ""
    if not wishes.replace and not person.agrees(f"{file} is there already. Change its model?"):
        if person.is_there:
            raise LeftAsItIs(f"{file} was left as it is: clew chat talks to its model")
        raise UsageError(
            f"{file} is there already and was left as it is: say --replace to change its model "
            f"(a copy stays as {BACKUP_NAME}, and all other settings), or edit it"
        )
    return file.read_text(encoding="utf-8")


def _refuse(finding: machine.Finding) -> None:
    if finding.level is Level.FAIL:
        raise ClewError(f"{finding.detail}: {finding.fix}")


def _answering(home: Path, wishes: Wishes, environ: Mapping[str, str], person: Person) -> Chosen:
    """A model that answered, or was not to be asked."""
    chooser = Chooser(home, wishes, environ, person)
    chosen = chooser.choose()
    while _is_tested(chosen, wishes):
        person.tell(f"asking {chosen.name} for a word …")
        trouble = ask_once(_as_asked(chosen, environ))
        if trouble is None:
            break
        if not person.is_there:
            raise ClewError(trouble.told)
        person.notes.write(f"clew: {trouble.told}\n")
        wishes = replace(wishes, model=None, base_url=None)
        chosen = _again(Chooser(home, wishes, environ, person), chosen, trouble, person)
    return chosen


def _is_tested(chosen: Chosen, wishes: Wishes) -> bool:
    return wishes.test and chosen.name != OFFLINE


def _as_asked(chosen: Chosen, environ: Mapping[str, str]) -> Choice:
    return Choice(
        name=chosen.name,
        base_url=chosen.base_url,
        key=chosen.key.reveal(environ) if chosen.key else None,
        key_told=chosen.key.told if chosen.key else "",
    )


def _again(chooser: Chooser, chosen: Chosen, trouble: Trouble, person: Person) -> Chosen:
    """What is tried next, as the person says."""
    by_key = trouble.kind is FailureKind.AUTH
    first = "type a key" if by_key else "try the same again"
    match person.choose("What now?", [first, "choose something else", "leave all as it is"]):
        case 0:
            return chooser.with_new_key(chosen) if by_key else chosen
        case 1:
            return chooser.choose()
        case _:
            raise LeftAsItIs("nothing was changed: run clew setup again at any time")


def _write(home: Path, before: str, chosen: Chosen, port: int | None) -> None:
    changes = {
        ("model", "name"): quote_toml(chosen.name),
        ("model", "base_url"): quote_toml(chosen.base_url) if chosen.base_url else None,
        ("model", "api_key"): chosen.key.toml(home) if chosen.key else None,
        # Whatever it was, it was that of another model.
        ("model", "context_window"): None,
    }
    if port is not None:
        changes["api", "port"] = str(port)
    after = edit_toml(before, changes)
    if before:
        atomic_write(home / BACKUP_NAME, before)
    atomic_write(home / "config.toml", after)


def _warnings(settings: Settings, chosen: Chosen) -> list[str]:
    found = list(settings.warnings)
    if settings.model.name != chosen.name:
        place = settings.origins["model.name"].place
        found.append(f"{place} goes before the file and names {settings.model.name}: take it away")
    port = machine.port(settings.api)
    if port.level is Level.FAIL:
        found.append(f"clew serve cannot start: {port.detail}; {port.fix} (clew setup --port)")
    return found
