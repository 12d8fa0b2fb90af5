"""Models of the requests of AG-UI; fields that have no meaning here are left out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from clew.api.schemas import RequestBody

_Id = Annotated[str, Field(min_length=1, max_length=255)]


class RunMessage(RequestBody):
    """A message of the client's history; only a new one of the user is taken."""

    id: str
    role: str
    content: Any = None


class ResumeEntry(RequestBody):
    """The answer to an interrupt: what the agent asked for, or that it was abandoned."""

    interrupt_id: str = Field(alias="interruptId")
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunRequest(RequestBody):
    """
    A request to run the agent.

    The agent has its own tools, settings and state: fields that are not listed are accepted
    and have no effect.
    """

    thread_id: _Id = Field(alias="threadId")
    run_id: _Id = Field(alias="runId")
    messages: list[RunMessage]
    tools: list[dict[str, Any]] | None = None
    resume: list[ResumeEntry] | None = None
