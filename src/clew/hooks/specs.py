"""
What plugins may implement.

A plugin is a module or object with functions of these names, each marked ``@hookimpl`` and taking
any of the arguments by name. Names and arguments are those that plugins of this field already use.

Facts are told after their commit, in order, at least once, and once unless the process dies in
between. They run off the turn's path: what they return is ignored, and one that raises, hangs or
blocks breaks nothing.

Interventions are asked on the turn's path and bounded in time.
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


@hookspec
def configure(options: Mapping[str, Any]) -> None:
    """
    Once, when the plugin is loaded and before anything else: its own table ``[plugins.NAME]``.

    What is named like a secret there is a ``clew.config.secret.Secret``: ``reveal()`` reads it at
    each use. A plugin that raises is not loaded, and Clew does not start without it.
    """


@hookspec
def on_session_start(session_id: str, model: str, platform: str) -> None:
    """Fact: the first turn of a session began."""


@hookspec
def on_session_end(
    session_id: str,
    turn_id: str,
    completed: bool,
    interrupted: bool,
    model: str,
    platform: str,
) -> None:
    """Fact: a turn has its outcome: an answer (``completed``), a stop (``interrupted``), or not."""


@hookspec
def on_session_finalize(session_id: str, platform: str) -> None:
    """Fact: a session is over (a reset, its expiry, a closed client), or its process stops."""


@hookspec
def on_session_reset(session_id: str, platform: str) -> None:
    """Fact: after a finalised session, its route goes on in the new session ``session_id``."""


@hookspec
def pre_tool_call(
    tool_name: str,
    args: Mapping[str, Any],
    session_id: str,
    turn_id: str,
    tool_call_id: str,
) -> Mapping[str, Any] | None:
    """
    Intervention: a tool is about to run.

    ``{"action": "block", "message": …}`` gives the model the message instead; ``{"action":
    "approve"}`` asks a person first; ``{"args": {…}}`` changes the arguments. All plugins are
    asked, and a block beats an approval, in any order. A plugin that does not answer in time
    blocks, and goes on blocking, without being asked or waited for, until it is done.
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
    """Fact: a tool call was answered: ok, error, retry, denied, cancelled or unknown."""


@hookspec
def post_llm_call(
    session_id: str,
    turn_id: str,
    user_message: str,
    assistant_response: str,
    model: str,
    platform: str,
) -> None:
    """Fact: a turn was answered; once per turn."""
