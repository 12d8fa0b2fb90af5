"""
Hook specifications for plugins.

A plugin is a module or object with functions of these names, each marked ``@hookimpl`` and
taking any of the arguments by name. Names and arguments are those that plugins of this
field already use.

Facts are sent after their commit, in order, at least once, and once unless the process dies
in between. They run off the turn's path: return values are ignored, and a plugin that
raises, hangs or blocks breaks nothing.

Interventions run on the turn's path, with a time limit.
"""

# The parameters are the specification; a specification has no body.
# pyright: reportUnusedParameter=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT = "clew"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
#: The hooks that ``clew.plugin.Registry.add_hook`` takes.
HOOKS = (
    "on_session_start",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "pre_tool_call",
    "post_tool_call",
    "post_llm_call",
    "transform_tool_result",
    "transform_llm_output",
    "pre_gateway_dispatch",
    "pre_approval_request",
    "post_approval_response",
)


@hookspec
def configure(options: Mapping[str, Any]) -> None:
    """
    Receive the plugin's own table ``[plugins.NAME]``, once, before any other hook.

    Values with the name of a secret are ``clew.config.secret.Secret``: call ``reveal()`` at
    each use. A plugin that raises is not loaded, and Clew does not start without it.
    """


@hookspec
def register(registry: Any) -> None:
    """
    Declare what the plugin adds beside hooks; does no I/O.

    ``registry`` is a ``clew.plugin.Registry``. Called once, before the settings are read.
    """


@hookspec
def on_session_start(session_id: str, model: str, platform: str) -> None:
    """Receive a fact: the first turn of a session began."""


@hookspec
def on_session_end(
    session_id: str,
    turn_id: str,
    completed: bool,
    interrupted: bool,
    model: str,
    platform: str,
) -> None:
    """Receive a fact: a turn ended, with an answer (``completed``), a stop, or a failure."""


@hookspec
def on_session_finalize(session_id: str, platform: str) -> None:
    """Receive a fact: a session ended (reset, expiry, closed client), or its process stops."""


@hookspec
def on_session_reset(session_id: str, platform: str) -> None:
    """Receive a fact: after a finalised session, its route continues in ``session_id``."""


@hookspec
def pre_tool_call(
    tool_name: str,
    args: Mapping[str, Any],
    session_id: str,
    turn_id: str,
    tool_call_id: str,
) -> Mapping[str, Any] | None:
    """
    Intervene before a tool runs.

    ``{"action": "block", "message": …}`` gives the model the message instead; ``{"action":
    "approve"}`` requires approval; ``{"args": {…}}`` changes the arguments. All plugins are
    asked, and a block beats an approval, in any order. A plugin that does not answer in
    time blocks this and later calls, without being called or waited for, until it has
    finished.
    """


@hookspec
def post_tool_call(  # noqa: PLR0913  (names and arguments are the field's)
    tool_name: str,
    args: Mapping[str, Any],
    result: str,
    session_id: str,
    turn_id: str,
    tool_call_id: str,
    status: str,
    duration_ms: int,
) -> None:
    """
    Receive a fact: a tool call ended.

    ``status`` is ok, error, retry, denied, cancelled or unknown.
    """


@hookspec
def post_llm_call(
    session_id: str,
    turn_id: str,
    user_message: str,
    assistant_response: str,
    model: str,
    platform: str,
) -> None:
    """Receive a fact: a turn was answered; once per turn."""


@hookspec
def transform_tool_result(  # noqa: PLR0913  (names and arguments are the field's)
    tool_name: str,
    args: Mapping[str, Any],
    result: str,
    session_id: str,
    turn_id: str,
    tool_call_id: str,
    status: str,
    duration_ms: int,
) -> str | None:
    """
    Intervene after a tool ran, before its result is stored.

    A text takes the place of the result, for the model and in the store. ``result`` is the text
    of the result, or its JSON. Plugins are called one after another, each with what the one
    before it left.
    """


@hookspec
def transform_llm_output(
    response_text: str, session_id: str, turn_id: str, model: str, platform: str
) -> str | None:
    """
    Intervene after the model answered, before the answer of the turn is stored and sent.

    A text that is not blank takes the place of the answer, for people, in the store, and for the
    model from then on. Plugins are called one after another, as above.
    """


@hookspec
def pre_gateway_dispatch(  # noqa: PLR0913  (names and arguments are the field's)
    text: str,
    platform: str,
    chat_id: str,
    chat_type: str,
    thread_id: str | None,
    user_id: str,
    user_name: str,
    message_id: str,
) -> Mapping[str, Any] | None:
    """
    Intervene when a chat platform delivered a message, before its sender's access is checked.

    ``{"action": "skip", "reason": …}`` drops it: it is not stored, and not answered.
    ``{"action": "rewrite", "text": …}`` changes the text before it is stored. All plugins are
    asked, and a skip beats a rewrite. A plugin that does not answer in time changes nothing.
    """


@hookspec
def pre_approval_request(
    tool_name: str,
    args: Mapping[str, Any],
    reason: str,
    session_id: str,
    turn_id: str,
    tool_call_id: str,
    platform: str,
) -> None:
    """Receive a fact: a person was asked to approve a tool call."""


@hookspec
def post_approval_response(  # noqa: PLR0913  (names and arguments are the field's)
    tool_name: str,
    args: Mapping[str, Any],
    reason: str,
    session_id: str,
    turn_id: str,
    tool_call_id: str,
    platform: str,
    choice: str,
    decided_by: str,
) -> None:
    """Receive a fact: the question was answered; ``choice`` is approved, denied or expired."""
