"""The hooks about messages of chats and about approvals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object
from clew.features.hermes.hooks import run_callbacks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.plugin import Registry

_DISPATCH: Final = "pre_gateway_dispatch"
_ASKED, _DECIDED = "pre_approval_request", "post_approval_response"
#: Their words for an answer, by ours.
_CHOICES: Final = {"approved": "once", "denied": "deny", "expired": "timeout"}


class PlatformName(str):
    """The name of a platform, as plugins read it from an enumeration."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)


@dataclass(kw_only=True)
class MessageSource:
    """The chat and the person that a message came from."""

    platform: PlatformName
    chat_id: str
    chat_type: str
    user_id: str
    user_name: str
    thread_id: str | None


@dataclass(kw_only=True)
class MessageEvent:
    """A message of a chat, as plugins of Hermes expect it."""

    text: str
    source: MessageSource
    message_id: str
    message_type: str = "text"
    internal: bool = False
    raw_message: Any = None
    media_urls: list[str] = field(default_factory=list[str])
    media_types: list[str] = field(default_factory=list[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def is_command(self) -> bool:
        """Return whether the message is a command."""
        return self.text.startswith("/")

    def get_command(self) -> str | None:
        """Return the name of the command; ``None`` if it is none."""
        first = self.text.split(maxsplit=1)[0][1:] if self.is_command() else ""
        return first.lower().partition("@")[0] or None


def declare_observers(registry: Registry, plugin: LoadedPlugin) -> None:
    """Declare the hooks of a plugin about messages and approvals."""
    observer = _Observer(plugin)
    if _DISPATCH in plugin.hooks:
        registry.add_hook(_DISPATCH, observer.ask_about_message)
    if _ASKED in plugin.hooks:
        registry.add_hook(_ASKED, observer.report_question)
    if _DECIDED in plugin.hooks:
        registry.add_hook(_DECIDED, observer.report_decision)


class _Observer:
    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin = plugin

    def ask_about_message(  # noqa: PLR0913  (names and arguments are the field's)
        self,
        text: str,
        platform: str,
        chat_id: str,
        chat_type: str,
        thread_id: str | None,
        user_id: str,
        user_name: str,
        message_id: str,
    ) -> Mapping[str, Any] | None:
        """Return what a plugin decides about a message: its first answer counts."""
        source = MessageSource(
            platform=PlatformName(platform),
            chat_id=chat_id,
            chat_type=chat_type,
            user_id=user_id,
            user_name=user_name,
            thread_id=thread_id,
        )
        event = MessageEvent(text=text, source=source, message_id=message_id)
        # Of the gateway and its sessions there is nothing that a plugin could change.
        arguments = {"event": event, "gateway": None, "session_store": None}
        answers = map(as_object, self._run(_DISPATCH, arguments))
        return next((one for one in answers if one.get("action")), None)

    def report_question(self, **question: Any) -> None:
        """Report that a person is asked about a call."""
        self._run(_ASKED, _describe_question(question))

    def report_decision(self, choice: str, decided_by: str, **question: Any) -> None:
        """Report the answer of a person."""
        known = {"choice": _CHOICES.get(choice, choice), "decided_by": decided_by}
        self._run(_DECIDED, {**_describe_question(question), **known})

    def _run(self, hook: str, arguments: Mapping[str, Any]) -> list[Any]:
        callbacks = self._plugin.hooks[hook]
        return self._plugin.worker.submit(
            lambda: run_callbacks(self._plugin, callbacks, arguments)
        ).result()


def _describe_question(question: Mapping[str, Any]) -> dict[str, Any]:
    tool, args = str(question["tool_name"]), as_object(question["args"])
    command = args.get("command")
    return {
        "command": command if isinstance(command, str) else f"{tool} {json.dumps(args)}",
        "description": question["reason"],
        "pattern_key": tool,
        "pattern_keys": [tool],
        "session_key": question["session_id"],
        "surface": "cli" if question["platform"] == "local" else "gateway",
        "turn_id": question["turn_id"],
        "tool_call_id": question["tool_call_id"],
    }
