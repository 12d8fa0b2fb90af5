"""Arguments of the hooks, as plugins of Hermes expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: All hooks get it.
_SCHEMA: Final = {"telemetry_schema_version": "hermes.observer.v1"}
#: The statuses of a tool call that Hermes has, by ours.
_STATUSES: Final = {"ok": "ok", "denied": "blocked"}


def make_ids(session: str, turn: str = "") -> dict[str, Any]:
    """Return the ids that most hooks have; a session is its own task."""
    return {"session_id": session, "task_id": session, "turn_id": turn}


def add_schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the version of their names."""
    return {**_SCHEMA, **arguments}


def make_call(
    *, tool_name: str, args: Any, session_id: str, turn_id: str, tool_call_id: str
) -> dict[str, Any]:
    """Return the arguments about a tool call."""
    return add_schema(
        {
            "tool_name": tool_name,
            "args": args,
            **make_ids(session_id, turn_id),
            "tool_call_id": tool_call_id,
            "api_request_id": "",
            "middleware_trace": [],
        }
    )


def make_outcome(*, result: Any, status: str, duration_ms: int) -> dict[str, Any]:
    """Return the arguments about what became of a tool call."""
    told = _STATUSES.get(status, "error")
    failed = told == "error"
    return {
        "result": result,
        "duration_ms": duration_ms,
        "status": told,
        "error_type": status if failed else None,
        "error_message": str(result)[:500] if failed else None,
    }


def split_model(name: str) -> tuple[str, str]:
    """Return provider and model of ``PROVIDER:MODEL``."""
    provider, _, model = name.partition(":")
    return (provider, model) if model else ("", name)
