"""Model selection: as given on the command line, as found, or as the user answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.cli.setup_wizard import providers as places
from clew.cli.setup_wizard.options import SelectedModel, SetupOptions
from clew.cli.setup_wizard.providers import (
    PRESETS,
    KeyLocation,
    ModelListing,
    ProviderOption,
    format_model_names,
)
from clew.config.settings import OFFLINE
from clew.config.toml_edit import atomic_write
from clew.errors import UsageError
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clew.cli.setup_wizard.prompts import Prompter

#: Known prefixes of model names; ``llama3:8b`` is a name without a prefix.
_PREFIXES: Final = frozenset(each.prefix for each in PRESETS)
_MAX_LISTED: Final = 20


class ModelSelector:
    """Selector of a model: finds the options, and prompts where there is a choice."""

    def __init__(
        self, home: Path, wishes: SetupOptions, environ: Mapping[str, str], person: Prompter
    ) -> None:
        self._home, self._options = home, wishes
        self._environ, self._prompter = environ, person

    def select_model(self) -> SelectedModel:
        """
        Return the model to test.

        :raises UsageError: if the options are unusable, or nothing was found and prompts
            are off
        """
        wishes, model = self._options, self._options.model
        if model == OFFLINE:
            return SelectedModel(name=OFFLINE)
        if wishes.base_url is not None:
            return self._select_at_url(wishes.base_url)
        if model is not None and model.partition(":")[0] in _PREFIXES:
            return SelectedModel(
                name=model, key=wishes.key or self._find_provider_key(model.partition(":")[0])
            )
        found = self._find_options()
        return self._select_option(found) if model is None else self._select_by_name(model, found)

    def prompt_new_key(self, chosen: SelectedModel) -> SelectedModel:
        """Return the same model with a key typed by the user, stored in a file of its own."""
        known = next((k for k in PRESETS if k.base_url == (chosen.base_url or "")), None)
        name = known.title.lower().replace(" ", "-") if known else "model"
        key = self._prompt_for_key(name, "The key (it is not shown)")
        return SelectedModel(name=chosen.name, base_url=chosen.base_url, key=key)

    def _find_options(self) -> list[ProviderOption]:
        local = asyncio.run(places.find_local_servers(self._options.servers))
        return [*places.find_configured_providers(self._environ), *local]

    def _find_provider_key(self, prefix: str) -> KeyLocation | None:
        """Return the usual variable of a provider, if it is set."""
        names = [each.variable for each in PRESETS if each.prefix == prefix and not each.base_url]
        return next((KeyLocation(env=name) for name in names if self._environ.get(name)), None)

    def _select_at_url(self, url: str) -> SelectedModel:
        """Return a model at a given address."""
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"{url!r} is not an address: an address begins with http:// or https://, for "
                "example http://127.0.0.1:11434/v1"
            )
        prefix, _, name = (self._options.model or "").partition(":")
        if prefix not in _PREFIXES:
            prefix, name = "openai-chat", self._options.model or ""
        offer = ProviderOption(
            label=url, prefix=prefix, base_url=url, key=self._options.key, models=()
        )
        return self._select_from_option(offer, name)

    def _select_from_option(self, offer: ProviderOption, name: str = "") -> SelectedModel:
        """Return a model of an option: as given, the only one, or as the user chooses."""
        if not name and not offer.models:
            offer = self._with_listed_models(offer)
        if not name and offer.models:
            name = self._pick_model(offer.label, offer.models)
        if not name and self._prompter.is_interactive:
            name = self._prompter.ask_text(f"Which model of {offer.label}? Its name")
        if not name:
            raise UsageError(
                f"{offer.label} does not list its models: name one with --model, and check that "
                "the address is right (it usually ends in /v1) and the server is running"
            )
        return SelectedModel(name=f"{offer.prefix}:{name}", base_url=offer.base_url, key=offer.key)

    def _with_listed_models(self, offer: ProviderOption) -> ProviderOption:
        """Add the models that the server lists to the option; prompt for a key if needed."""
        found = self._list_models(offer)
        if found.wants_key and not found.models:
            if not self._prompter.is_interactive:
                raise UsageError(
                    f"{offer.label} lists its models only with a key: name it with --key-env NAME "
                    "or --key-file PATH, or name a model with --model"
                )
            self._prompter.print_note(f"{offer.label} lists its models only with a key")
            offer = replace(offer, key=self._prompt_for_key("model", "The key (it is not shown)"))
            found = self._list_models(offer)
        if found.models and found.base_url != offer.base_url:
            self._prompter.print_note(f"its API is at {found.base_url}")
        return replace(offer, models=found.models, base_url=found.base_url)

    def _list_models(self, offer: ProviderOption) -> ModelListing:
        key = offer.key.reveal(self._environ) if offer.key else None
        return asyncio.run(places.list_models(offer.prefix, offer.base_url, key))

    def _pick_model(self, what: str, models: Sequence[str]) -> str:
        """Return one model of a list; the user may filter a long one."""
        person = self._prompter
        while person.is_interactive and len(models) > _MAX_LISTED:
            part = person.ask_text(
                f"{what} has {len(models)} models. A part of the name, or nothing for the first "
                f"{_MAX_LISTED}",
                default="",
            )
            fitting = [name for name in models if part.lower() in name.lower()]
            if not fitting:
                person.print_note(f"no name has {part!r} in it")
                continue
            models = fitting if part else fitting[:_MAX_LISTED]
        return models[person.choose_option(f"Which model of {what}?", models)]

    def _select_by_name(self, model: str, found: Sequence[ProviderOption]) -> SelectedModel:
        """Return the model of this name, wherever it was found."""
        for offer in found:
            if model in offer.models:
                return self._select_from_option(offer, model)
        if ":" in model:
            return SelectedModel(name=model, key=self._options.key)
        told = [
            f"{offer.label} has {format_model_names(offer.models)}"
            for offer in found
            if offer.models
        ]
        raise UsageError(
            f"no model {model!r} was found{' (' + '; '.join(told) + ')' if told else ''}: write "
            "PROVIDER:MODEL, or name its server with --base-url"
        )

    def _select_option(self, found: Sequence[ProviderOption]) -> SelectedModel:
        """Return one of the options found; without prompts the first."""
        person = self._prompter
        if len(found) == 1:
            person.print_note(f"found {found[0].label}")
            return self._select_from_option(found[0])
        if not person.is_interactive:
            if found:
                person.print_note(f"found {', '.join(offer.label for offer in found)}")
                return self._select_from_option(found[0])
            raise UsageError(self._nothing_found_message())
        others = (
            *(f"{each.title}, with a key that you paste" for each in PRESETS[:3]),
            "another server, by its address",
            "none for now: a fixed script answers, so that you can look around",
        )
        if not found:
            person.print_note("no provider's key is in the environment, and no server answers here")
        number = person.choose_option(
            "Which model shall answer?", [*(each.label for each in found), *others]
        )
        if number < len(found):
            return self._select_from_option(found[number])
        return self._select_other(number - len(found))

    def _select_other(self, number: int) -> SelectedModel:
        if number < 3:
            known = PRESETS[number]
            key = self._prompt_for_key(
                known.title.lower(), f"Your key for {known.title} (not shown)"
            )
            return self._select_from_option(
                ProviderOption(
                    label=known.title,
                    prefix=known.prefix,
                    base_url=known.base_url or None,
                    key=key,
                    models=(known.model,) if known.model else (),
                )
            )
        if number == 3:
            url = self._prompter.ask_text("Its address", default="http://127.0.0.1:11434/v1")
            return self._select_at_url(url if "://" in url else f"http://{url}")
        return SelectedModel(name=OFFLINE)

    def _prompt_for_key(self, name: str, question: str) -> KeyLocation:
        folder = self._home / "keys"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / name
        atomic_write(file, self._prompter.ask_text(question, secret=True) + "\n")
        return KeyLocation(file=file)

    def _nothing_found_message(self) -> str:
        variables = ", ".join(each.variable for each in PRESETS)
        servers = ", ".join(f"{name} ({url})" for name, url in self._options.servers.items())
        return (
            f"no provider's key is in the environment ({variables}) and no server answers with a "
            f"model ({servers}): set a key or start a server and run clew setup again, name a "
            "server with --base-url, or look around without one: clew setup --model offline"
        )
