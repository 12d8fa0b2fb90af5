"""Connection check: one request to the chosen model, and how to fix a failure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.agent.advice import ADVICE
from clew.agent.models import ModelSpec, build_model, close_models_on_exit
from clew.agent.probe import probe_model
from clew.agent.provider_errors import FailureKind
from clew.cli.setup_wizard.providers import format_model_names, is_local_address, list_model_names
from clew.core.text import REDACTED
from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from clew.agent.provider_errors import ProviderFailure

#: Seconds to wait for an answer; a local model may have to be loaded first.
TIMEOUT: Final = 120.0


class ConnectionTarget(Record):
    """The model to send the request to: full name, address, key."""

    name: str
    base_url: str | None
    #: The key itself: for the request only, never printed.
    key: str | None
    #: Place of the key, for people; "" without one.
    key_location: str

    @property
    def place(self) -> str:
        return self.base_url or f"the provider of {self.name}"


class ConnectionProblem(Record):
    """A reason for which a model cannot be used, and how to fix it."""

    kind: FailureKind
    message: str


async def check_connection(
    choice: ConnectionTarget, *, patience: float = TIMEOUT
) -> ConnectionProblem | None:
    """Send the model a short request; return the problem, ``None`` if it answers."""
    spec = ModelSpec(
        name=choice.name, base_url=choice.base_url, api_key=choice.key, timeout=patience
    )
    async with close_models_on_exit():
        try:
            model = build_model(spec)
        except SettingsError as error:
            return ConnectionProblem(kind=FailureKind.REFUSED, message=str(error))
        failure = await probe_model(model, patience=patience)
    if failure is None:
        return None
    told = await _describe_failure(choice, failure)
    # A provider may quote the key that it rejects.
    return ConnectionProblem(
        kind=failure.kind, message=told.replace(choice.key, REDACTED) if choice.key else told
    )


async def _describe_failure(choice: ConnectionTarget, failure: ProviderFailure) -> str:
    match failure.kind:
        case FailureKind.AUTH:
            return _describe_key_refusal(choice, failure)
        case FailureKind.FORBIDDEN:
            return (
                f"{choice.place} does not let the key in {choice.key_location or 'use'} do this "
                f"({failure.text}): look at what this account and region may use, or choose "
                "another model with --model"
            )
        case FailureKind.NO_MODEL:
            return await _describe_missing_model(choice, failure)
        case FailureKind.CONNECTION | FailureKind.DNS | FailureKind.UNREACHABLE:
            return _describe_unreachable(choice, failure)
        case FailureKind.TIMEOUT:
            return (
                f"{choice.place} did not answer in time ({failure.text}): a model that is being "
                "loaded takes a while, so try again; or choose a smaller one with --model"
            )
        case FailureKind.QUOTA | FailureKind.RATE_LIMIT:
            return (
                f"{choice.place} takes no requests from this account now "
                f"({failure.user_message}): look "
                "at its credit and limits there, or choose another provider"
            )
        case FailureKind.OVERLOADED | FailureKind.SERVER:
            return (
                f"{choice.place} has a problem of its own ({failure.user_message}): try again in "
                "a minute, or write the settings without a test request, with --no-test"
            )
        case FailureKind.TLS | FailureKind.PROXY | FailureKind.AGENT_CODE | FailureKind.INTERNAL:
            return (
                f"{choice.place} cannot be used ({failure.user_message}). "
                f"{ADVICE[failure.kind].text}"
            )
        case _:
            return (
                f"{choice.name} did not answer like a model API ({failure.user_message}): check "
                "--base-url, which usually ends in /v1, and --model"
            )


def _describe_key_refusal(choice: ConnectionTarget, failure: ProviderFailure) -> str:
    if not choice.key:
        return (
            f"{choice.place} requires a key ({failure.text}): put it into an environment variable "
            "and name that with --key-env NAME, or a file with --key-file PATH"
        )
    return (
        f"{choice.place} does not take the key in {choice.key_location} ({failure.text}): put the "
        "right key there, or name another place with --key-env NAME or --key-file PATH"
    )


async def _describe_missing_model(choice: ConnectionTarget, failure: ProviderFailure) -> str:
    prefix, _, name = choice.name.partition(":")
    offered = await list_model_names(prefix, choice.base_url, choice.key)
    if not offered:
        return (
            f"there is no model {name!r} at {choice.place} ({failure.text}): check --model, and "
            "--base-url, which usually ends in /v1"
        )
    return (
        f"there is no model {name!r} at {choice.place}: choose one with --model; it has "
        f"{format_model_names(offered)}"
    )


def _describe_unreachable(choice: ConnectionTarget, failure: ProviderFailure) -> str:
    if choice.base_url and is_local_address(choice.base_url):
        return (
            f"nothing answers at {choice.base_url} ({failure.text}): start the server, or name "
            "another place with --base-url"
        )
    return (
        f"{choice.place} cannot be reached ({failure.text}): check the network, the proxy and "
        "the address, or use a server on this machine (Ollama, LM Studio, llama.cpp)"
    )


def check_connection_sync(
    choice: ConnectionTarget, *, patience: float = TIMEOUT
) -> ConnectionProblem | None:
    """Run ``check_connection`` where no event loop runs."""
    return asyncio.run(check_connection(choice, patience=patience))
