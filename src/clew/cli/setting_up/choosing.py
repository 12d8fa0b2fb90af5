"""Which model: as was said, as was found, or as a person answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clew.cli.setting_up import offers as places
from clew.cli.setting_up.offers import KNOWN, Key, Listing, Offer, shown
from clew.cli.setting_up.wishes import Chosen, Wishes
from clew.config.settings import OFFLINE
from clew.config.writing import atomic_write
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clew.cli.setting_up.person import Person

#: How names of models begin that are reached here; ``llama3:8b`` is a name without a beginning.
_PREFIXES: Final = frozenset(each.prefix for each in KNOWN)
_MOST: Final = 20


class Chooser:
    """Finds what there is, and asks where there is a choice."""

    def __init__(
        self, home: Path, wishes: Wishes, environ: Mapping[str, str], person: Person
    ) -> None:
        self._home, self._wishes = home, wishes
        self._environ, self._person = environ, person

    def choose(self) -> Chosen:
        """
        The model to try.

        :raises UsageError: if what was said cannot be, or nothing was found and nobody is there
        """
        wishes, model = self._wishes, self._wishes.model
        if model == OFFLINE:
            return Chosen(name=OFFLINE)
        if wishes.base_url is not None:
            return self._at(wishes.base_url)
        if model is not None and model.partition(":")[0] in _PREFIXES:
            return Chosen(name=model, key=wishes.key or self._key_of(model.partition(":")[0]))
        found = self._found()
        return self._one(found) if model is None else self._named(model, found)

    def with_new_key(self, chosen: Chosen) -> Chosen:
        """The same model with a key that the person types; it is kept in a file of its own."""
        known = next((k for k in KNOWN if k.base_url == (chosen.base_url or "")), None)
        name = known.title.lower().replace(" ", "-") if known else "model"
        key = self._typed_key(name, "The key (it is not shown)")
        return Chosen(name=chosen.name, base_url=chosen.base_url, key=key)

    def _found(self) -> list[Offer]:
        local = asyncio.run(places.on_this_machine(self._wishes.servers))
        return [*places.with_keys(self._environ), *local]

    def _key_of(self, prefix: str) -> Key | None:
        """The usual variable of a provider, if it is set."""
        names = [each.variable for each in KNOWN if each.prefix == prefix and not each.base_url]
        return next((Key(env=name) for name in names if self._environ.get(name)), None)

    def _at(self, url: str) -> Chosen:
        """A model at an address that was given."""
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"{url!r} is no address: it begins with http:// or https://, for example "
                "http://127.0.0.1:11434/v1"
            )
        prefix, _, name = (self._wishes.model or "").partition(":")
        if prefix not in _PREFIXES:
            prefix, name = "openai-chat", self._wishes.model or ""
        offer = Offer(what=url, prefix=prefix, base_url=url, key=self._wishes.key, models=())
        return self._of(offer, name)

    def _of(self, offer: Offer, name: str = "") -> Chosen:
        """A model of an offer: as was said, the only one, or as the person chooses."""
        if not name and not offer.models:
            offer = self._listed(offer)
        if not name and offer.models:
            name = self._one_of(offer.what, offer.models)
        if not name and self._person.is_there:
            name = self._person.ask(f"Which model of {offer.what}? Its name")
        if not name:
            raise UsageError(
                f"{offer.what} does not tell its models: name one with --model, and check that "
                "the address is right (it mostly ends in /v1) and the server is started"
            )
        return Chosen(name=f"{offer.prefix}:{name}", base_url=offer.base_url, key=offer.key)

    def _listed(self, offer: Offer) -> Offer:
        """Return an offer with the models that its server names, with a key if it wants one."""
        found = self._ask_for_models(offer)
        if found.wants_key and not found.models:
            if not self._person.is_there:
                raise UsageError(
                    f"{offer.what} names its models only to those with a key: say where it is with "
                    "--key-env NAME or --key-file PATH, or name a model with --model"
                )
            self._person.tell(f"{offer.what} names its models only to those with a key")
            offer = replace(offer, key=self._typed_key("model", "The key (it is not shown)"))
            found = self._ask_for_models(offer)
        if found.models and found.base_url != offer.base_url:
            self._person.tell(f"its API is at {found.base_url}")
        return replace(offer, models=found.models, base_url=found.base_url)

    def _ask_for_models(self, offer: Offer) -> Listing:
        key = offer.key.reveal(self._environ) if offer.key else None
        return asyncio.run(places.list_models(offer.prefix, offer.base_url, key))

    def _one_of(self, what: str, models: Sequence[str]) -> str:
        """Return a model of many: the person may narrow them down."""
        person = self._person
        while person.is_there and len(models) > _MOST:
            part = person.ask(
                f"{what} has {len(models)} models. A part of the name, or nothing for the first "
                f"{_MOST}",
                default="",
            )
            fitting = [name for name in models if part.lower() in name.lower()]
            if not fitting:
                person.tell(f"no name has {part!r} in it")
                continue
            models = fitting if part else fitting[:_MOST]
        return models[person.choose(f"Which model of {what}?", models)]

    def _named(self, model: str, found: Sequence[Offer]) -> Chosen:
        """The model of this name, wherever it was found."""
        for offer in found:
            if model in offer.models:
                return self._of(offer, model)
        if ":" in model:
            return Chosen(name=model, key=self._wishes.key)
        told = [f"{offer.what} has {shown(offer.models)}" for offer in found if offer.models]
        raise UsageError(
            f"no model {model!r} was found{' (' + '; '.join(told) + ')' if told else ''}: write "
            "PROVIDER:MODEL, or say where it is served with --base-url"
        )

    def _one(self, found: Sequence[Offer]) -> Chosen:
        """One of what was found; without a person the first."""
        person = self._person
        if len(found) == 1:
            person.tell(f"found {found[0].what}")
            return self._of(found[0])
        if not person.is_there:
            if found:
                person.tell(f"found {', '.join(offer.what for offer in found)}")
                return self._of(found[0])
            raise UsageError(self._nothing())
        others = (
            *(f"{each.title}, with a key that you paste" for each in KNOWN[:3]),
            "another server, by its address",
            "none now: a script answers, to look around",
        )
        if not found:
            person.tell("no provider's key is in the environment, and no server answers here")
        number = person.choose(
            "Which model shall answer?", [*(each.what for each in found), *others]
        )
        if number < len(found):
            return self._of(found[number])
        return self._other(number - len(found))

    def _other(self, number: int) -> Chosen:
        if number < 3:
            known = KNOWN[number]
            key = self._typed_key(known.title.lower(), f"Your key for {known.title} (not shown)")
            return self._of(
                Offer(
                    what=known.title,
                    prefix=known.prefix,
                    base_url=known.base_url or None,
                    key=key,
                    models=(known.model,) if known.model else (),
                )
            )
        if number == 3:
            url = self._person.ask("Its address", default="http://127.0.0.1:11434/v1")
            return self._at(url if "://" in url else f"http://{url}")
        return Chosen(name=OFFLINE)

    def _typed_key(self, name: str, question: str) -> Key:
        folder = self._home / "keys"
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / name
        atomic_write(file, self._person.ask(question, secret=True) + "\n")
        return Key(file=file)

    def _nothing(self) -> str:
        variables = ", ".join(each.variable for each in KNOWN)
        servers = ", ".join(f"{name} ({url})" for name, url in self._wishes.servers.items())
        return (
            f"no provider's key is in the environment ({variables}) and no server answers with a "
            f"model ({servers}): set a key or start a server and run clew setup again, say where "
            "one is with --base-url, or look around without one: clew setup --model offline"
        )
