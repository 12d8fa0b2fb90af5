"""Hooks, middleware and registrations of Hermes that Clew has, and why it lacks the others."""

from __future__ import annotations

from typing import Final

#: The hooks that Clew calls.
CALLED_HOOKS: Final = (
    "on_session_start",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "pre_llm_call",
    "post_llm_call",
    "pre_tool_call",
    "post_tool_call",
    "pre_api_request",
    "post_api_request",
    "api_request_error",
    "subagent_start",
    "subagent_stop",
    "transform_tool_result",
    "transform_terminal_output",
    "transform_llm_output",
    "pre_gateway_dispatch",
    "pre_approval_request",
    "post_approval_response",
)
#: The kinds of middleware that Clew calls.
CALLED_MIDDLEWARE: Final = ("tool_request",)
#: What a plugin would rely on: it must not believe that it has registered it.
REFUSED: Final = {
    "register_approval_transport": "Clew asks for approvals itself, on the route of the "
    'conversation; return {"action": "approve"} from pre_tool_call to have it ask',
}
_KANBAN: Final = "Clew has no board of tasks"
_STORED: Final = "the model is sent what the store holds and nothing else"
_NO_HOOK: Final = {
    "pre_verify": "a turn ends with the model's answer; pre_tool_call sees each call before it",
    "kanban_task_claimed": _KANBAN,
    "kanban_task_completed": _KANBAN,
    "kanban_task_blocked": _KANBAN,
}
_NO_MIDDLEWARE: Final = {
    "llm_request": f"{_STORED}; pre_llm_call adds text to a message",
    "llm_execution": f"{_STORED}; transform_llm_output changes an answer before it is stored",
    "tool_execution": "a call runs once, under the rules of Clew; pre_tool_call decides about it, "
    "and transform_tool_result changes its result before it is stored",
}
_NO_REGISTRATION: Final = {
    "register_platform": "the adapters of Hermes need its gateway; Clew has channels of its own, "
    "and its plugins add others with Registry.add_channel",
    "register_context_engine": "compactions are stored; a plugin of Clew adds an engine with "
    "Registry.add_compactor",
    "register_web_search_provider": "no tool of Clew asks it; register_tool offers a search",
    "register_slack_action_handler": "the buttons of Slack are those of Clew",
    "register_dashboard_auth_provider": "people sign in to the dashboard with a token of Clew",
    "register_secret_source": "secrets are read from the settings and the environment",
}


def explain_hook(name: str) -> str | None:
    """Return why a hook is never called; ``None`` if it is."""
    if name in CALLED_HOOKS:
        return None
    why = _NO_HOOK.get(name)
    return f"the hook {name!r} is never called" + (f": {why}" if why else "")


def explain_middleware(kind: str) -> str | None:
    """Return why a kind of middleware is never called; ``None`` if it is."""
    if kind in CALLED_MIDDLEWARE:
        return None
    why = _NO_MIDDLEWARE.get(kind)
    return f"the middleware {kind!r} is never called" + (f": {why}" if why else "")


def explain_registration(called: str, name: str) -> str:
    """Return that what ``ctx.NAME`` registers is not used; ``called`` is the call as it was."""
    why = _NO_REGISTRATION.get(name)
    said = f"{called} was accepted, and what it registers is not used"
    return said + (f": {why}" if why else "")
